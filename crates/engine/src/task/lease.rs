//! Leases: checked, expired, released (A4).

use super::end::{self, Ending};
use super::fail::note_retry;
use super::loaded::{Loaded, load, with_owner};
use super::ready::make_ready;
use super::token::TaskToken;
use crate::command::Subject;
use crate::ids::{ActionRunNumber, Namespace};
use crate::rejection::Rejection;
use crate::run::{self, outcome_name};
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunStatus, ActionRuns, Lease, TaskError, TimerKey, TimerKind,
};
use crate::turn::{Outcome, Turn};
use crate::worker;

/// A task in a worker's hands.
pub(super) struct Leased {
    pub(super) task: Loaded,
    pub(super) lease: Lease,
}

/// The timer of a lease of the task's current attempt.
pub(super) fn lease_timer(task: &Loaded, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::LeaseExpiry,
        due_ms,
        subject: task.number.0,
        detail: task.record.attempt,
    }
}

/// The task that `token` gives the right to report on.
///
/// So a late worker cannot finish somebody else's attempt.
pub(super) fn check(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    token: &TaskToken,
) -> Outcome<Leased> {
    let task = find_open(turn, Some(namespace), token.action_run)?;
    match task.record.lease.clone() {
        Some(lease) if token.is_of(task.record.attempt, lease.secret) => Ok(Leased { task, lease }),
        None if task.record.report.is_some() => Err(Rejection::TaskAccepted(task.number).into()),
        Some(_) | None => Err(Rejection::LeaseLost(task.number).into()),
    }
}

/// The task of the open action run `number`, in a namespace or in any.
pub(super) fn find_open(
    turn: &mut Turn<'_, '_>,
    namespace: Option<&Namespace>,
    number: ActionRunNumber,
) -> Outcome<Loaded> {
    let record = turn
        .draft::<ActionRuns>(&number)?
        .filter(|record| namespace.is_none_or(|namespace| record.namespace == *namespace))
        .ok_or(Rejection::ActionRunNotFound(number))?;
    let task = Loaded { number, record };
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
                let run = run::record(turn, run)?;
                let run = run.expect("a run is kept as long as its action runs");
                Rejection::RunQuarantined(run.id.clone()).into()
            }
            ActionRunOwner::Caller => Rejection::ActionRunQuarantined(number).into(),
        });
    }
    Ok(task)
}

/// Takes the lease away: the worker no longer holds the task, the timer is taken back.
pub(super) fn drop_lease(
    turn: &mut Turn<'_, '_>,
    task: &mut Loaded,
) -> Result<Option<Lease>, StoreError> {
    let Some(lease) = task.record.lease.take() else {
        return Ok(None);
    };
    turn.clear_timer(lease_timer(task, lease.expires_at_ms));
    let worker = (&task.record.namespace, &lease.worker);
    worker::let_go(turn, worker, task.number)?;
    Ok(Some(lease))
}

/// A lease has ended unreported: another attempt at once, or the end (A4).
pub(crate) fn expire(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    attempt: u32,
) -> Outcome<()> {
    let mut task = load(turn, number)?;
    if task.record.attempt != attempt {
        return Ok(());
    }
    let Some(lease) = drop_lease(turn, &mut task)? else {
        return Ok(());
    };
    let worker = (&task.record.namespace, &lease.worker);
    worker::count(turn, worker, &task.record.action, false)?;
    end::revoke(turn, &task, &lease);
    let timeout_ms = task.record.timeout_ms;
    task.record.error = Some(TaskError {
        code: outcome_name::TIMEOUT.to_owned(),
        message: format!("expected a report within {timeout_ms} ms, but none came"),
    });
    if task.record.attempt < task.record.attempts_max {
        task.record.attempt += 1;
        task.record.become_status(ActionRunStatus::Pending);
        return with_owner(turn, task.record.owner, |turn, mut run| {
            note_retry(turn, run.as_deref_mut(), (&task, 0))?;
            task.put(turn);
            make_ready(turn, run, number)
        });
    }
    let ending = Ending {
        status: ActionRunStatus::TimedOut,
        outcome: outcome_name::of(outcome_name::TIMEOUT),
        output: None,
        is_retryable: true,
    };
    end::end(turn, task, ending)
}

/// A worker is gone: its task is ready again, the same attempt (A4).
pub(crate) fn release(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> Outcome<()> {
    turn.suspect(Subject::ActionRun(number));
    let mut task = load(turn, number)?;
    if drop_lease(turn, &mut task)?.is_none() {
        return Ok(());
    }
    task.record.become_status(ActionRunStatus::Pending);
    let owner = task.record.owner;
    task.put(turn);
    with_owner(turn, owner, |turn, run| make_ready(turn, run, number))
}
