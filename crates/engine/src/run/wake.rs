//! What a run's timers do when they fire (W12, W14, W19).

use super::advance::{advance, advance_after_wait};
use super::failure::Exit;
use super::loaded::{load, put_back};
use super::outcome::name;
use super::settle::{follow, leave};
use crate::definition::{BuiltInTerminal, StepKind, Target};
use crate::ids::RunNumber;
use crate::tables::{ActivationState, Awaited, EventKind, Settled, Work};
use crate::turn::{Outcome, Turn};

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
    let Some(mut active) = run.take(turn, activation)? else {
        put_back(turn, run);
        return Ok(());
    };
    if let ActivationState::Retry { .. } = active.state {
        let attempt = active.attempt;
        run.note(&active, EventKind::StepRetry { attempt });
    }
    // A plan goes on where it stands; all else begins anew.
    if !matches!(active.state, ActivationState::Plan(_)) {
        active.state = ActivationState::Executing;
    }
    run.put_back(active);
    put_back(turn, run);
    advance_after_wait(turn, number, Work::Execute { activation })
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
    let Some(active) = run.take(turn, activation)? else {
        put_back(turn, run);
        return Ok(());
    };
    let definition = run.definition.clone();
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
    run.note(&active, EventKind::SignalTimeout { target });
    let waited_ms = wait.timeout_ms.unwrap_or_default();
    let settled = Settled {
        from: Awaited::Signal,
        outcome: name::of(name::TIMEOUT),
        output: None,
        reason: Some(format!(
            "expected signal \"{}\" within {waited_ms} ms, but none came",
            wait.signal_type
        )),
        is_retryable: false,
    };
    let exit = Exit {
        definition: &definition.definition,
        step,
        settled: &settled,
        target,
    };
    let detail = exit.detail(turn, &run)?;
    leave(turn, &mut run, &active, settled);
    run.end_wait();
    put_back(turn, run);
    advance(turn, number, follow(target, detail))
}
