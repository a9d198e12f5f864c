//! Handlers of a run's timers (W12, W14, W19).

use super::advance::{advance, advance_after_wait};
use super::failure::{self, Exit};
use super::finish_step::{follow, leave};
use super::outcome::name;
use crate::definition::{BuiltInTerminal, StepKind, Target};
use crate::ids::RunNumber;
use crate::tables::{ActivationState, Awaited, EventKind, TargetResult, Work};
use crate::turn::{Turn, TurnResult};

/// A retry or poll is due.
pub(crate) fn wake_step(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    activation: u32,
) -> TurnResult<()> {
    // A quarantined run's timers fire without a turn of the run.
    if turn.is_quarantined(number) {
        return Ok(());
    }
    let mut run = turn.load_run(number)?;
    let Some(mut active) = run.take(turn, activation)? else {
        turn.put_back_run(run);
        return Ok(());
    };
    if active.state.awaits() != Awaited::Time {
        run.put_back(active);
        turn.put_back_run(run);
        return Ok(());
    }
    if let ActivationState::Retry { .. } = active.state {
        let attempt = active.attempt;
        run.note(&active, EventKind::StepRetry { attempt });
    }
    // A plan continues with its current executor; any other target is invoked again.
    if !matches!(active.state, ActivationState::Plan(_)) {
        active.state = ActivationState::Executing;
    }
    run.put_back(active);
    turn.put_back_run(run);
    advance_after_wait(turn, number, Work::Execute { activation })
}

/// A wait's deadline has passed: `onTimeout`, else a `timeout` transition, else the run's end.
pub(crate) fn expire_signal(
    turn: &mut Turn<'_, '_>,
    number: RunNumber,
    activation: u32,
) -> TurnResult<()> {
    if turn.is_quarantined(number) {
        return Ok(());
    }
    let mut run = turn.load_run(number)?;
    let Some(active) = run.take(turn, activation)? else {
        turn.put_back_run(run);
        return Ok(());
    };
    if active.state.awaits() != Awaited::Signal {
        run.put_back(active);
        turn.put_back_run(run);
        return Ok(());
    }
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
    let mut target_result = TargetResult {
        from: Awaited::Signal,
        outcome: name::of(name::TIMEOUT),
        output: None,
        reason: Some(format!(
            "expected signal \"{}\" within {waited_ms} ms, but none came",
            wait.signal_type
        )),
        is_retryable: false,
    };
    failure::complete_output(turn, &mut run, &mut target_result);
    let exit = Exit {
        definition: &definition.definition,
        step,
        target_result: &target_result,
        target,
    };
    let detail = exit.detail(turn, &run)?;
    leave(turn, &mut run, &active, target_result)?;
    run.end_wait();
    turn.put_back_run(run);
    advance(turn, number, follow(target, detail))
}
