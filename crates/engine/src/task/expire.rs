//! Leases and report deadlines that end without a report: expired, released with their worker, or lost with their node
//! (A4, W38).

use super::end::{self, Ending, end_cancelled};
use super::fail::{note_retry, try_again};
use super::lease::{drop_lease, drop_report, revoke, set_end};
use super::loaded::{load, with_owner};
use super::queue;
use super::ready::make_ready;
use crate::ids::ActionRunNumber;
use crate::run::outcome_name;
use crate::subject::Subject;
use crate::tables::{ActionRunOwner, ActionRunStatus, LEASE_SUSPENDED_MS, StepTimeout, TaskError};
use crate::turn::{Turn, TurnResult};
use crate::worker::LeaseEnd;

/// The code of an attempt whose node died (W35).
const NODE_LOST: &str = "node_lost";

/// A lease has expired: another attempt is made immediately, or the action run ends (A4).
pub(crate) fn expire(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> TurnResult<()> {
    let mut task = load(turn, number)?;
    if task.is_quarantined(turn) {
        // The lease expires after the release, so that a panic does not keep the leases behind it.
        set_end(turn, task, LEASE_SUSPENDED_MS)?;
        return Ok(());
    }
    let Some(lease) = drop_lease(turn, &mut task, LeaseEnd::Failed)? else {
        return Ok(());
    };
    if task.record.is_cancelling {
        return end_cancelled(turn, task);
    }
    revoke(turn, &task, &lease);
    let timeout_ms = task.record.timeout_ms;
    let has_step_heartbeat = task.record.has_step_heartbeat;
    let timeout = has_step_heartbeat.then_some(StepTimeout::Heartbeat);
    task.record.error = Some(TaskError {
        code: timeout
            .map_or(outcome_name::TIMEOUT, StepTimeout::code)
            .to_owned(),
        message: StepTimeout::Heartbeat.message(timeout_ms),
    });
    if task.record.attempt < task.record.attempts_max {
        task.record.attempt += 1;
        task.record.become_status(ActionRunStatus::Pending);
        return with_owner(turn, task.record.owner, |turn, mut run| {
            note_retry(turn, run.as_deref_mut(), &task, 0)?;
            make_ready(turn, run, task)
        });
    }
    end::end(turn, task, Ending::of_timed_out(timeout))
}

/// A worker is gone: its task is ready again, with the same attempt number (A4).
pub(crate) fn release(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> TurnResult<()> {
    turn.attribute_to(Subject::ActionRun(number));
    let mut task = load(turn, number)?;
    // A quarantined task keeps its lease until its release, so that a panic does not keep the leases behind it.
    if task.is_quarantined(turn) || drop_lease(turn, &mut task, LeaseEnd::Withdrawn)?.is_none() {
        return Ok(());
    }
    if task.record.is_cancelling {
        return end_cancelled(turn, task);
    }
    task.record.become_status(ActionRunStatus::Pending);
    with_owner(turn, task.record.owner, |turn, run| {
        make_ready(turn, run, task)
    })
}

/// The node has died that ran the task: the attempt has failed. The action is retried with its backoff while attempts
/// are left (A4).
pub(crate) fn lose(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> TurnResult<()> {
    turn.attribute_to(Subject::ActionRun(number));
    let mut task = load(turn, number)?;
    // A quarantined task keeps its lease until its release, so that a panic does not keep the leases behind it.
    if task.is_quarantined(turn) {
        return Ok(());
    }
    let Some(lease) = drop_lease(turn, &mut task, LeaseEnd::Failed)? else {
        return Ok(());
    };
    if task.record.is_cancelling {
        return end_cancelled(turn, task);
    }
    task.record.error = Some(TaskError {
        code: NODE_LOST.to_owned(),
        message: format!(
            "expected `{}` to report on the attempt, but its node died or lost contact with the leader",
            lease.worker
        ),
    });
    if task.record.attempt < task.record.attempts_max {
        return try_again(turn, task, None);
    }
    end::end(turn, task, Ending::of_failed())
}

/// A report is overdue: the attempt ends with `timeout`. The action is not retried, because the accepted work may still
/// be in progress elsewhere.
pub(crate) fn expire_report(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    attempt: u64,
) -> TurnResult<()> {
    let mut task = load(turn, number)?;
    if u64::from(task.record.attempt) != attempt || !drop_report(turn, &mut task) {
        return Ok(());
    }
    task.record.error = Some(TaskError {
        code: outcome_name::TIMEOUT.to_owned(),
        message: "expected a report on the accepted task before its deadline, but none came"
            .to_owned(),
    });
    end::end(turn, task, Ending::of_timed_out(None))
}

/// No worker has taken the action run in time: it ends `timed_out` (A2, W70).
pub(crate) fn expire_wait(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    attempt: u64,
) -> TurnResult<()> {
    let mut task = load(turn, number)?;
    if u64::from(task.record.attempt) != attempt || task.is_quarantined(turn) {
        return Ok(());
    }
    assert_eq!(
        task.record.status,
        ActionRunStatus::Pending,
        "what a worker has taken waits no longer"
    );
    queue::withdraw(turn, &task)?;
    task.record.wait_ends_at_ms = None;
    let timeout = match task.record.owner {
        ActionRunOwner::Step { .. } => Some(StepTimeout::Queue),
        ActionRunOwner::Caller => None,
    };
    let waited_ms = task.record.queue_timeout_ms.unwrap_or_default();
    task.record.error = Some(TaskError {
        code: timeout
            .map_or(outcome_name::TIMEOUT, StepTimeout::code)
            .to_owned(),
        message: StepTimeout::Queue.message(waited_ms),
    });
    end::end(turn, task, Ending::of_timed_out(timeout))
}
