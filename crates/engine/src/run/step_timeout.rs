//! Steps, and attempts at them, that have taken too long (W70).

use super::finish_step::{Attempt, end_call};
use super::outcome::name;
use super::stopping::{self, Stopped};
use super::{branches, for_each, timeout_timers};
use crate::json::Json;
use crate::run::work_queue::WorkQueue;
use crate::tables::{
    Activation, ActivationState, EventKind, FailureCause, OverdueStep, StepTimeout, TargetResult,
    Work,
};
use crate::turn::{Draft, LoadedRun, Turn, TurnResult};

/// Ends an attempt or a step that has taken too long. What it waits for is cancelled.
pub(super) fn time_out(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    overdue: OverdueStep,
) -> TurnResult<()> {
    let Some(mut active) = run.take(turn, overdue.activation)? else {
        return Ok(());
    };
    let timeout = overdue.timeout;
    let is_due = match timeout {
        StepTimeout::Total => active.timeouts.total_ends_at_ms == Some(overdue.due_ms),
        StepTimeout::Attempt | StepTimeout::Queue | StepTimeout::Heartbeat => {
            active.timeouts.attempt_ends_at_ms == Some(overdue.due_ms)
        }
    };
    if !is_due {
        run.put_back(active);
        return Ok(());
    }
    if active.ending.undoing.is_some() {
        return end_retries(turn, run, active);
    }
    // What the step executes is deferred behind this work. It goes first: the step has to wait for something before that can
    // be cancelled.
    if active.state.is_executing() {
        timeout_timers::fire_again(turn, run.at(&active), &mut active, timeout);
        run.put_back(active);
        return Ok(());
    }
    match timeout {
        StepTimeout::Total => active.timeouts.total_ends_at_ms = None,
        StepTimeout::Attempt | StepTimeout::Queue | StepTimeout::Heartbeat => {
            active.timeouts.attempt_ends_at_ms = None;
        }
    }
    if active.state.is_decided() {
        run.put_back(active);
        return Ok(());
    }
    let timeout = match timeout {
        StepTimeout::Attempt if active.timeouts.queued_child.is_some() => StepTimeout::Queue,
        timeout => timeout,
    };
    run.note(&active, EventKind::StepTimeout { timeout });
    match active.state {
        ActivationState::Branches(_) => branches::time_out(turn, queue, run, active),
        ActivationState::Iterations(_) => for_each::time_out(turn, queue, run, active),
        _ => abort(turn, queue, run, Overdue { active, timeout }),
    }
}

/// The total timeout of a step whose blocks are undone: it is not tried again. One that would be left has ended in time.
fn end_retries(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    mut active: Draft<Activation>,
) -> TurnResult<()> {
    let timeout = StepTimeout::Total;
    active.timeouts.total_ends_at_ms = None;
    let mut undoing = active
        .ending
        .undoing
        .take()
        .expect("the step undoes its blocks");
    if undoing.retry_due_ms.take().is_some() {
        run.note(&active, EventKind::StepTimeout { timeout });
        undoing.target_result = timed_out(turn, run, &active, timeout);
        branches::drop_writes(turn, run, &active)?;
    }
    active.ending.undoing = Some(undoing);
    run.put_back(active);
    Ok(())
}

/// The result of a step or an attempt that has taken too long.
fn timed_out(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    timeout: StepTimeout,
) -> TargetResult {
    let definition = &run.definition.definition;
    let limit_ms = match timeout {
        StepTimeout::Total => definition.total_ms(active.step, active.call),
        StepTimeout::Queue => definition.timeouts(active.step, active.call).queue_ms,
        StepTimeout::Attempt | StepTimeout::Heartbeat => {
            definition.timeouts(active.step, active.call).attempt_ms
        }
    };
    let limit_ms = limit_ms.unwrap_or_default();
    let message = match timeout {
        StepTimeout::Queue => {
            format!("expected the child run to begin within {limit_ms} ms, but it did not")
        }
        StepTimeout::Total | StepTimeout::Attempt | StepTimeout::Heartbeat => {
            timeout.message(limit_ms)
        }
    };
    TargetResult {
        output: Some(run.store_payload(turn, Json::error(timeout.code(), &message))),
        reason: Some(message),
        is_retryable: true,
        cause: FailureCause::of_timeout(timeout).into(),
        ..TargetResult::of_engine(name::of(name::TIMEOUT))
    }
}

/// A step that has taken too long, and its timeout.
struct Overdue {
    active: Draft<Activation>,
    timeout: StepTimeout,
}

/// Cancels what the attempt waits for, and concludes it when that has ended (W54).
fn abort(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    overdue: Overdue,
) -> TurnResult<()> {
    let Overdue {
        mut active,
        timeout,
    } = overdue;
    let timed_out = timed_out(turn, run, &active, timeout);
    if active.is_stopping() {
        // The attempt has taken too long, and now the step has.
        active.ending.timeout_result = Some(timed_out);
        run.put_back(active);
        return Ok(());
    }
    let stopped = stopping::stop(turn, run, &active)?;
    if let ActivationState::Retry { .. } = active.state {
        // The next attempt was counted when it was scheduled, and is not made.
        active.attempt -= 1;
    }
    timeout_timers::stop_attempt(turn, run.at(&active), &mut active);
    let step = &run.definition.definition.step(active.step).name;
    let reason = format!("step \"{step}\" of parent {} timed out", run.record.id);
    match stopped {
        Stopped::Ended | Stopped::ChildAbandoned(_) => {
            active.state = ActivationState::Executing;
            let attempt = Attempt {
                target_result: timed_out,
                active,
                output: None,
            };
            end_call(turn, queue, run, attempt)?;
        }
        Stopped::AwaitsWorker | Stopped::AwaitsChild(_) => {
            active.ending.timeout_result = Some(timed_out);
            run.put_back(active);
        }
    }
    // It ends before the run continues.
    if let Stopped::ChildAbandoned(child) | Stopped::AwaitsChild(child) = stopped {
        let reason = Some(reason);
        queue.push(child, Work::Cancel { reason });
    }
    Ok(())
}
