//! Handlers of a run's timers (W12, W14, W19).

use super::advance::{advance, advance_after_wait};
use super::failure::{self, Exit};
use super::finish_step::leave;
use super::outcome::name;
use super::{approval, start_timer, timer_step};
use crate::definition::{BuiltInTerminal, StepKind, Target};
use crate::ids::RunNumber;
use crate::mostly_default::MostlyDefault;
use crate::tables::{
    Activation, ActivationState, Awaited, EventKind, OverdueStep, PlanWait, StepTimeout,
    TargetResult, TimerKey, TimerKind, Work,
};
use crate::turn::{ActivationRef, Draft, LoadedRun, Turn, TurnResult};

/// The timer of a retry, of a poll, of a step that waits for a time or of one that is entered later has fired.
pub(crate) fn wake_step(turn: &mut Turn<'_, '_>, timer: TimerKey) -> TurnResult<()> {
    let Some((mut run, mut active)) = take_waiting(turn, timer, &[Awaited::Time])? else {
        return Ok(());
    };
    let at = run.at(&active);
    let activation = at.activation;
    if let ActivationState::Retry { .. } = active.state {
        let attempt = active.attempt;
        run.note(&active, EventKind::StepRetry { attempt });
    }
    let work = match active.state {
        ActivationState::Timer { .. } => Work::FinishStep {
            activation,
            target_result: timer_step::ended(turn, &mut run, &active),
        },
        ActivationState::Delay { .. } => Work::EnterDelayed { activation },
        _ => Work::Execute { activation },
    };
    // The work may be done in a later entry. A plan continues with its current executor; any other target is invoked again.
    active.state = match active.state.clone() {
        ActivationState::Plan(mut plan) => {
            plan.wait = PlanWait::Executing;
            ActivationState::Plan(plan)
        }
        delay @ ActivationState::Delay { .. } => delay,
        _ => ActivationState::Executing,
    };
    run.put_back(active);
    turn.put_back_run(run);
    advance_after_wait(turn, at, work)
}

/// The timer of a wait has fired: `onTimeout`, else a `timeout` transition, else the run's end.
pub(crate) fn expire_wait(turn: &mut Turn<'_, '_>, timer: TimerKey) -> TurnResult<()> {
    let Some((mut run, active)) = take_waiting(turn, timer, &[Awaited::Signal, Awaited::Approval])?
    else {
        return Ok(());
    };
    let number = run.number;
    let definition = run.definition.clone();
    let step = definition.definition.step(active.step);
    let by_transition = || {
        let found = step
            .transitions
            .iter()
            .find(|line| line.outcome.as_str() == name::TIMEOUT);
        found.map(|line| line.target)
    };
    let on_timeout = match &step.kind {
        StepKind::Wait(wait) => wait.on_timeout,
        _ => None,
    };
    let target = on_timeout
        .or_else(by_transition)
        .unwrap_or(Target::BuiltIn(BuiltInTerminal::TimedOut));
    let mut target_result = expired(turn, &mut run, &active, target)?;
    failure::complete_output(turn, &mut run, &mut target_result);
    let exit = Exit {
        definition: &definition.definition,
        scope: active.scope,
        step,
        index: active.step,
        target_result: &target_result,
        cause: failure::cause_in(turn, &target_result)?,
    };
    let reason = exit.end_reason(turn, &run, target)?;
    let work = exit.follow(target, reason);
    leave(turn, &mut run, &active, target_result)?;
    run.end_wait(active.scope);
    turn.put_back_run(run);
    advance(turn, number, work)
}

/// The time has come at which a run begins (W76).
pub(crate) fn begin_run(turn: &mut Turn<'_, '_>, timer: TimerKey) -> TurnResult<()> {
    let number = RunNumber(timer.subject);
    // The timer of a quarantined run is restored when the run is released.
    if turn.is_quarantined(number) {
        return Ok(());
    }
    let Some(mut run) = turn.load_run_if_kept(number)? else {
        return Ok(());
    };
    let is_due = run.record.timers.starts_at_ms == Some(timer.due_ms);
    let work = match is_due {
        true => start_timer::begin(turn, &mut run)?,
        false => None,
    };
    turn.put_back_run(run);
    match work {
        Some(work) => advance(turn, number, work),
        None => Ok(()),
    }
}

/// The timer of a run has fired (W73).
pub(crate) fn time_out_run(turn: &mut Turn<'_, '_>, timer: TimerKey) -> TurnResult<()> {
    let number = RunNumber(timer.subject);
    // The timer of a quarantined run is restored when the run is released.
    if turn.is_quarantined(number) {
        return Ok(());
    }
    let record = turn.run_record(number)?;
    if record.is_some_and(|run| run.timers.times_out_at_ms == Some(timer.due_ms)) {
        advance(turn, number, Work::TimeOut)?;
    }
    Ok(())
}

/// The timer of a step, or of an attempt at it, has fired (W70).
pub(crate) fn time_out_step(turn: &mut Turn<'_, '_>, timer: TimerKey) -> TurnResult<()> {
    let number = RunNumber(timer.subject);
    // The timers of a quarantined run are restored when the run is released.
    if turn.is_quarantined(number) {
        return Ok(());
    }
    let overdue = OverdueStep {
        activation: timer.detail,
        due_ms: timer.due_ms,
        timeout: match timer.kind {
            TimerKind::StepTotal => StepTimeout::Total,
            _ => StepTimeout::Attempt,
        },
    };
    let at = ActivationRef {
        run: number,
        activation: timer.detail,
    };
    advance_after_wait(turn, at, Work::TimeOutStep(overdue))
}

/// What a step ends with when its wait has expired. The run continues at `target`.
fn expired(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    target: Target,
) -> TurnResult<TargetResult> {
    let definition = run.definition.clone();
    let step = &definition.definition.step(active.step).kind;
    let (output, reason) = match (&active.state, step) {
        (ActivationState::Signal(awaited), StepKind::Wait(wait)) => {
            run.note(active, EventKind::SignalTimeout { target });
            let waited_ms = wait.timeout_ms.unwrap_or_default();
            let signal_type = &awaited.signal_type;
            let reason =
                format!("expected signal \"{signal_type}\" within {waited_ms} ms, but none came");
            (None, reason)
        }
        (ActivationState::Approval(open), StepKind::Approval(approval)) => {
            let waited_ms = approval.timeout_ms.unwrap_or_default();
            let (count, quorum) = (open.approvals_count, approval.quorum);
            let reason = format!(
                "expected approvals: {quorum} within {waited_ms} ms, but there were {count}"
            );
            let output = approval::end(turn, run.at(active), name::TIMEOUT, Some(&reason))?;
            (Some(run.store_payload(turn, output)), reason)
        }
        _ => panic!("only waits for a signal or a decision expire"),
    };
    Ok(TargetResult {
        from: active.state.awaits(),
        outcome: name::of(name::TIMEOUT),
        output,
        reason: Some(reason),
        is_retryable: false,
        cause: MostlyDefault::default(),
        not_before_ms: None,
        state_patch: None,
    })
}

/// Takes out the activation whose timer fired, with its run; `None` if its step does not wait for one of `awaited` and for
/// exactly this timer, or if the run is quarantined: its timers fire without effect.
fn take_waiting(
    turn: &mut Turn<'_, '_>,
    timer: TimerKey,
    awaited: &[Awaited],
) -> TurnResult<Option<(LoadedRun, Draft<Activation>)>> {
    let number = RunNumber(timer.subject);
    if turn.is_quarantined(number) {
        return Ok(None);
    }
    let is_awaited = |state: &ActivationState| {
        awaited.contains(&state.awaits()) && state.due_ms() == Some(timer.due_ms)
    };
    let mut run = turn.load_run(number)?;
    match run.take(turn, timer.detail)? {
        Some(active) if is_awaited(&active.state) => return Ok(Some((run, active))),
        Some(active) => run.put_back(active),
        None => {}
    }
    turn.put_back_run(run);
    Ok(None)
}
