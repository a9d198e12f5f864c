//! Leases: checked, expired, released (A4).

use super::end::{self, Ending};
use super::fail::note_retry;
use super::ready::{load, make_ready};
use super::token::TaskToken;
use crate::command::Subject;
use crate::ids::{ActionRunNumber, Namespace};
use crate::rejection::Rejection;
use crate::run::{self, outcome_name};
use crate::store::StoreError;
use crate::tables::{
    ActionRunOwner, ActionRunRecord, ActionRunStatus, ActionRuns, Lease, TaskError, TimerKey,
    TimerKind,
};
use crate::turn::{Outcome, Turn};
use crate::worker;

/// The timer of a lease.
pub(super) fn lease_timer(number: ActionRunNumber, attempt: u32, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::LeaseExpiry,
        due_ms,
        subject: number.0,
        detail: attempt,
    }
}

/// The action run that `token` gives the right to report on, and its lease.
///
/// So a late worker cannot finish somebody else's attempt.
pub(super) fn check(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    token: &TaskToken,
) -> Outcome<(ActionRunRecord, Lease)> {
    let record = turn.get::<ActionRuns>(&token.action_run)?;
    let record = record
        .filter(|record| record.namespace == *namespace)
        .ok_or(Rejection::ActionRunNotFound(token.action_run))?;
    if !record.status.is_open() {
        let (action_run, status) = (token.action_run, record.status.name().to_owned());
        return Err(Rejection::ActionRunEnded { action_run, status }.into());
    }
    if turn.is_task_quarantined(token.action_run, &record) {
        return Err(match record.owner {
            ActionRunOwner::Step { run, .. } => {
                Rejection::RunQuarantined(run::load(turn, run)?.id).into()
            }
            ActionRunOwner::Caller => Rejection::ActionRunQuarantined(token.action_run).into(),
        });
    }
    match &record.lease {
        Some(lease) if record.attempt == token.attempt && lease.secret == token.secret => {
            Ok(((*record).clone(), lease.clone()))
        }
        Some(_) | None => Err(Rejection::LeaseLost(token.action_run).into()),
    }
}

/// Takes the lease away: the worker no longer holds the task, the timer is taken back.
pub(super) fn drop_lease(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    record: &mut ActionRunRecord,
) -> Result<Option<Lease>, StoreError> {
    let Some(lease) = record.lease.take() else {
        return Ok(None);
    };
    turn.clear_timer(lease_timer(number, record.attempt, lease.expires_at_ms));
    worker::let_go(turn, (&record.namespace, &lease.worker), number)?;
    Ok(Some(lease))
}

/// A lease has ended unreported: another attempt at once, or the end (A4).
pub(crate) fn expire(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
    attempt: u32,
) -> Outcome<()> {
    let mut record = load(turn, number)?;
    if record.attempt != attempt {
        return Ok(());
    }
    let Some(lease) = drop_lease(turn, number, &mut record)? else {
        return Ok(());
    };
    worker::count(
        turn,
        (&record.namespace, &lease.worker),
        (&record.action, false),
    )?;
    end::revoke(turn, number, &record, &lease);
    let message = format!(
        "expected a report within {} ms, but none came",
        record.timeout_ms
    );
    record.error = Some(TaskError {
        code: outcome_name::TIMEOUT.to_owned(),
        message,
    });
    if record.attempt < record.attempts_max {
        record.attempt += 1;
        record.status = ActionRunStatus::Pending;
        note_retry(turn, (number, &record), 0)?;
        turn.put::<ActionRuns>(&number, record);
        return make_ready(turn, number);
    }
    let ending = Ending {
        status: ActionRunStatus::TimedOut,
        outcome: outcome_name::of(outcome_name::TIMEOUT),
        output: None,
        is_retryable: true,
    };
    end::end(turn, (number, record), ending)
}

/// A worker is gone: its task is ready again, the same attempt (A4).
pub(crate) fn release(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> Outcome<()> {
    turn.suspect(Subject::ActionRun(number));
    let mut record = load(turn, number)?;
    if drop_lease(turn, number, &mut record)?.is_none() {
        return Ok(());
    }
    record.status = ActionRunStatus::Pending;
    turn.put::<ActionRuns>(&number, record);
    make_ready(turn, number)
}
