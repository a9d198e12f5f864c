//! Steps, and attempts at them, that have taken too long (W70).

use super::cancel_scope::stop;
use super::finish_step::{Attempt, conclude};
use super::outcome::name;
use super::{branches, for_each, step_deadline};
use crate::json::Json;
use crate::run::work_queue::WorkQueue;
use crate::tables::{
    Activation, ActivationState, EventKind, OverdueStep, StepTimeout, TargetResult, Work,
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
        StepTimeout::Total => active.total_ends_at_ms == Some(overdue.due_ms),
        StepTimeout::Attempt | StepTimeout::Queue | StepTimeout::Heartbeat => {
            active.attempt_ends_at_ms == Some(overdue.due_ms)
        }
    };
    // Whatever a step executes was queued before its timer fired, so a step that still executes has other work to come.
    if !is_due || active.state.is_executing() {
        run.put_back(active);
        return Ok(());
    }
    match timeout {
        StepTimeout::Total => active.total_ends_at_ms = None,
        StepTimeout::Attempt | StepTimeout::Queue | StepTimeout::Heartbeat => {
            active.attempt_ends_at_ms = None;
        }
    }
    run.note(&active, EventKind::StepTimeout { timeout });
    match active.state {
        ActivationState::Branches(_) => branches::time_out(turn, queue, run, active),
        ActivationState::Iterations(_) => for_each::time_out(turn, queue, run, active),
        _ => cut(turn, queue, run, Cut { active, timeout }),
    }
}

/// An attempt that has taken too long.
struct Cut {
    active: Draft<Activation>,
    timeout: StepTimeout,
}

/// Cancels what the attempt waits for, and concludes it.
fn cut(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    cut: Cut,
) -> TurnResult<()> {
    let Cut {
        mut active,
        timeout,
    } = cut;
    let definition = run.definition.clone();
    let definition = &definition.definition;
    let child = stop(turn, run, &active)?;
    step_deadline::end_attempt(turn, run.at(&active), &mut active);
    active.state = ActivationState::Executing;
    let limit_ms = match timeout {
        StepTimeout::Total => definition.total_ms(active.step, active.call),
        StepTimeout::Attempt | StepTimeout::Queue | StepTimeout::Heartbeat => {
            definition.timeouts(active.step, active.call).attempt_ms
        }
    };
    let message = timeout.message(limit_ms.unwrap_or_default());
    let step = &definition.step(active.step).name;
    let reason = format!("step \"{step}\" of parent {} timed out", run.record.id);
    let attempt = Attempt {
        target_result: TargetResult {
            output: Some(run.store_payload(turn, Json::error(timeout.code(), &message))),
            reason: Some(message),
            is_retryable: true,
            timeout: Some(timeout),
            ..TargetResult::of_engine(name::of(name::TIMEOUT))
        },
        active,
        output: None,
    };
    conclude(turn, queue, run, attempt)?;
    // It ends before the run continues.
    if let Some(child) = child {
        let reason = Some(reason);
        queue.push(child, Work::Cancel { reason });
    }
    Ok(())
}
