//! What a run's timers do when they fire (W12, W14, W19).

use super::advance::{Settled, advance};
use super::failure::Exit;
use super::loaded::{ActivationRef, ActiveStep, load};
use super::outcome::name;
use super::settle::{follow, leave};
use crate::definition::{BuiltInTerminal, StepKind, Target};
use crate::ids::RunNumber;
use crate::tables::{ActivationState, EventKind, RunStatus};
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
    let at = ActivationRef {
        run: number,
        activation,
    };
    let Some(mut active) = ActiveStep::load(turn, at)? else {
        return Ok(());
    };
    if let ActivationState::Retry { .. } = active.activation.state {
        let attempt = active.activation.attempt;
        active.note(turn, EventKind::StepRetry { attempt });
    }
    // A plan goes on where it stands; all else begins anew.
    if !matches!(active.activation.state, ActivationState::Plan(_)) {
        active.activation.state = ActivationState::Executing;
    }
    active.run.record.status = RunStatus::Running;
    active.put(turn);
    advance(turn, at.execute())
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
    let Some(active) = load(turn, number)?.active_step(activation) else {
        return Ok(());
    };
    let definition = pinned(turn, active.run.record.definition)?;
    let step = definition.definition.step(active.activation.step);
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
    active.note(turn, EventKind::SignalTimeout { target });
    let waited_ms = wait.timeout_ms.unwrap_or_default();
    let settled = Settled {
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
    let detail = exit.detail(turn, &active.run.record)?;
    leave(turn, active, settled)?;
    advance(turn, follow(number, target, detail))
}
