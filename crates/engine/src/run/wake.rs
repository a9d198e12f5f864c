//! What a run's timers do when they fire (W12, W14, W19).

use super::advance::{Settled, Work, advance};
use super::open::load;
use super::outcome::name;
use super::settle::record_result;
use crate::definition::{BuiltInTerminal, StepKind, Target};
use crate::ids::RunNumber;
use crate::tables::{ActivationState, Event, EventKind, RunStatus, Runs};
use crate::turn::{Outcome, Turn};
use crate::workflow::pinned;

/// A retry or poll is due.
pub(crate) fn wake_step(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    activation: u32,
) -> Outcome<()> {
    // A quarantined run's timers are taken back without a turn of the run.
    if turn.is_quarantined(number) {
        return Ok(());
    }
    let mut run = load(turn, number)?;
    let Some(active) = run.activation_mut(activation) else {
        return Ok(());
    };
    let (step, attempt) = (active.step, active.attempt);
    let is_retry = matches!(active.state, ActivationState::Retry { .. });
    active.state = ActivationState::Executing;
    run.status = RunStatus::Running;
    turn.put::<Runs>(&number, run);
    if is_retry {
        turn.event(
            number,
            Event {
                step: Some(step),
                kind: EventKind::StepRetry { attempt },
            },
        );
    }
    advance(
        turn,
        Work::Execute {
            run: number,
            activation,
        },
    )
}

/// A wait's deadline has passed: `onTimeout`, else a `timeout` transition, else the run's end.
pub(crate) fn expire_signal(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    activation: u32,
) -> Outcome<()> {
    if turn.is_quarantined(number) {
        return Ok(());
    }
    let mut run = load(turn, number)?;
    let Some(active) = run.activation(activation).cloned() else {
        return Ok(());
    };
    let definition = pinned(turn, run.definition)?;
    let step = definition.definition.step(active.step);
    let StepKind::Wait(wait) = &step.kind else {
        panic!("only wait steps have a deadline")
    };
    let by_transition = || {
        let found = step
            .transitions
            .iter()
            .find(|line| line.outcome.as_str() == name::TIMEOUT);
        found.map(|line| line.target)
    };
    let target = wait
        .on_timeout
        .or_else(by_transition)
        .unwrap_or(Target::BuiltIn(BuiltInTerminal::TimedOut));
    let kind = EventKind::SignalTimeout { target };
    turn.event(
        number,
        Event {
            step: Some(active.step),
            kind,
        },
    );
    let settled = Settled {
        outcome: name::of(name::TIMEOUT),
        output: None,
        is_retryable: false,
    };
    record_result(turn, (number, &mut run), &active, settled);
    turn.put::<Runs>(&number, run);
    let work = match target {
        Target::Step(step) => Work::Enter { run: number, step },
        Target::BuiltIn(_) | Target::Custom(_) => Work::Finish {
            run: number,
            terminal: target,
            detail: None,
        },
    };
    advance(turn, work)
}
