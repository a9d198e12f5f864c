//! Cancellation of an action run: with its run (W18), or on request (A2).

use super::lease::{drop_lease, drop_report, find_open, revoke};
use super::loaded::{LoadedTask, expire_later, load};
use super::{label_queue, queue, wait};
use crate::ids::{ActionRunNumber, Namespace};
use crate::message::cut;
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{ActionRunOwner, ActionRunStatus, TaskError};
use crate::turn::{Turn, TurnResult};
use crate::worker::LeaseEnd;

/// How the action run of a step is cancelled (W54).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelMode {
    /// The step waits until the worker that holds the task has answered or lost the lease.
    Wait,
    /// The worker loses the task. The step waits only for an answer that has arrived already, but was not processed yet.
    Abandon,
    /// The worker loses the task, and no answer is processed.
    Force,
}

/// Cancels an action run; returns whether its result is still to come.
pub(crate) fn cancel(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    mode: CancelMode,
) -> Result<bool, StoreError> {
    let mut task = load(turn, number)?;
    if !task.record.status.is_open() {
        return Ok(mode != CancelMode::Force);
    }
    if mode == CancelMode::Wait
        && let Some(lease) = task.record.lease.clone()
    {
        if !task.record.is_cancelling {
            task.record.is_cancelling = true;
            revoke(turn, &task, &lease);
            task.put(turn);
        }
        return Ok(true);
    }
    give_up(turn, &mut task)?;
    task.put(turn);
    Ok(false)
}

/// Cancels an open stand-alone action run, which is then retained like any that has ended.
///
/// # Errors
/// [`Rejection::ActionRunOfStep`] for an action run of a step: its run would wait forever.
pub(crate) fn cancel_stand_alone(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    number: ActionRunNumber,
    reason: Option<&str>,
) -> TurnResult<()> {
    let mut task = find_open(turn, Some(namespace), number)?;
    if let ActionRunOwner::Step { run, .. } = task.record.owner {
        let run = turn.run_record(run)?;
        let run = run.expect("a run is kept as long as its action runs");
        return Err(Rejection::ActionRunOfStep {
            action_run: number,
            run_id: run.id.clone(),
        }
        .into());
    }
    if let Some(reason) = reason {
        task.record.error = Some(TaskError {
            code: ActionRunStatus::Cancelled.name().to_owned(),
            message: cut(reason),
        });
    }
    give_up(turn, &mut task)?;
    expire_later(turn, &task);
    task.put(turn);
    Ok(())
}

fn give_up(turn: &mut Turn<'_, '_>, task: &mut LoadedTask) -> Result<(), StoreError> {
    task.record.is_cancelling = false;
    match drop_lease(turn, task, LeaseEnd::Withdrawn)? {
        Some(lease) => revoke(turn, task, &lease),
        None => queue::withdraw(turn, task)?,
    }
    drop_report(turn, task);
    wait::end(turn, task);
    label_queue::close(turn, &task.record)?;
    task.record.become_status(ActionRunStatus::Cancelled);
    task.record.completed_at_ms = Some(turn.now_ms());
    Ok(())
}
