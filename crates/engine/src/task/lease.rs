//! Checking and revoking leases and the right to report (A4, W38).

use super::loaded::LoadedTask;
use super::token::TaskToken;
use crate::effect::Effect;
use crate::ids::{ActionRunNumber, Namespace};
use crate::rejection::Rejection;
use crate::store::StoreError;
use crate::tables::{ActionRunOwner, ActionRuns, Lease, LeasePlace, TimerKey, TimerKind};
use crate::turn::{Turn, TurnResult};
use crate::worker::{self, LeaseEnd};

/// A task that a worker holds.
pub(super) struct LeasedTask {
    pub(super) task: LoadedTask,
    pub(super) lease: Lease,
}

/// The task on which `token` gives the right to report.
///
/// A late worker therefore cannot finish another worker's attempt.
pub(super) fn check(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    token: &TaskToken,
) -> TurnResult<LeasedTask> {
    let task = find_open(turn, Some(namespace), token.action_run)?;
    match task.record.lease.clone() {
        Some(lease) if token.is_of(task.record.attempt, lease.proof) => {
            Ok(LeasedTask { task, lease })
        }
        None if task.record.report.is_some() => Err(Rejection::TaskAccepted(task.number).into()),
        Some(_) | None => Err(Rejection::LeaseLost(task.number).into()),
    }
}

/// The task of the open action run `number`, in the given namespace or in any.
pub(super) fn find_open(
    turn: &mut Turn<'_, '_>,
    namespace: Option<&Namespace>,
    number: ActionRunNumber,
) -> TurnResult<LoadedTask> {
    let record = turn
        .draft::<ActionRuns>(&number)?
        .filter(|record| namespace.is_none_or(|namespace| record.namespace == *namespace))
        .ok_or(Rejection::ActionRunNotFound(number))?;
    let task = LoadedTask { number, record };
    if !task.record.status.is_open() {
        let status = task.record.status.name().to_owned();
        return Err(Rejection::ActionRunEnded {
            action_run: number,
            status,
        }
        .into());
    }
    if task.is_quarantined(turn) {
        return Err(match task.record.owner {
            ActionRunOwner::Step { run, .. } => {
                let run = turn.run_record(run)?;
                let run = run.expect("a run is kept as long as its action runs");
                Rejection::RunQuarantined(run.id.clone()).into()
            }
            ActionRunOwner::Caller => Rejection::ActionRunQuarantined(number).into(),
        });
    }
    Ok(task)
}

/// Ends the lease: the worker no longer holds the task.
pub(super) fn drop_lease(
    turn: &mut Turn<'_, '_>,
    task: &mut LoadedTask,
    end: LeaseEnd,
) -> Result<Option<Lease>, StoreError> {
    let Some(lease) = task.record.lease.take() else {
        return Ok(None);
    };
    worker::end_lease(turn, task, &lease, end)?;
    Ok(Some(lease))
}

/// Lets the lease of a leased task end at `expires_at_ms`, and writes the task.
pub(super) fn set_end(
    turn: &mut Turn<'_, '_>,
    mut task: LoadedTask,
    expires_at_ms: u64,
) -> Result<u64, StoreError> {
    let place = LeasePlace {
        expires_at_ms,
        task: task.number,
    };
    let record = &mut *task.record;
    let lease = record.lease.as_mut().expect("the task is leased");
    worker::move_lease(turn, &record.namespace, lease, place)?;
    let expires_at_ms = lease.expires_at_ms;
    task.put(turn);
    Ok(expires_at_ms)
}

/// Notifies the worker that it no longer holds the task, or that it should stop and answer, if the task is cancelled.
pub(super) fn revoke(turn: &mut Turn<'_, '_>, task: &LoadedTask, lease: &Lease) {
    turn.effect(Effect::RevokeTask {
        namespace: task.record.namespace.clone(),
        worker: lease.worker.clone(),
        token: TaskToken {
            action_run: task.number,
            attempt: task.record.attempt,
            secret: lease.proof.secret,
        },
        is_answer_awaited: task.record.is_cancelling,
    });
}

/// Revokes the right to report and clears its timer; false if there was none.
pub(super) fn drop_report(turn: &mut Turn<'_, '_>, task: &mut LoadedTask) -> bool {
    let Some(report) = task.record.report.take() else {
        return false;
    };
    if let Some(deadline_at_ms) = report.deadline_at_ms {
        turn.clear_timer(report_timer(task, deadline_at_ms));
    }
    true
}

/// The timer of the report that is awaited on the task's current attempt.
pub(super) fn report_timer(task: &LoadedTask, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::ReportExpiry,
        due_ms,
        subject: task.number.0,
        detail: u64::from(task.record.attempt),
    }
}
