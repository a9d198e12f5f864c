//! The task of something that was set aside gets back what it has lost meanwhile (design rule 10).

use super::lease::lease_timer;
use super::loaded::Loaded;
use super::queue;
use super::ready::make_ready;
use super::report::report_timer;
use crate::ids::ActionRunNumber;
use crate::limits::{RETENTION_MS_DEFAULT, TAKE_UP_TIMERS_LOOKED_AT_MAX};
use crate::retention;
use crate::run::LoadedRun;
use crate::store::StoreError;
use crate::tables::{
    ActionRuns, Awaited, AwaitedReport, Expiration, Expiring, Lease, Settled, TimerKind, Timers,
};
use crate::timer;
use crate::turn::{Outcome, Turn};
use std::ops::ControlFlow;

/// Takes up the action run of a step; what it came back with, if it has ended meanwhile.
pub(crate) fn take_up(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    number: ActionRunNumber,
) -> Outcome<Option<Settled>> {
    let Some(record) = turn.draft::<ActionRuns>(&number)? else {
        return Ok(None);
    };
    if record.status.is_open() {
        take_up_task(turn, Some(run), Loaded { number, record })?;
        return Ok(None);
    }
    let error = record.error.as_ref();
    Ok(record.outcome.as_ref().map(|outcome| Settled {
        from: Awaited::Action(number),
        outcome: outcome.clone(),
        output: record.output,
        reason: error.map(|error| error.in_words(outcome)),
        // While nobody was let report on it, only its time could end it.
        is_retryable: true,
    }))
}

/// Takes up an action run outside any workflow; one that has ended meanwhile expires again.
pub(crate) fn take_up_own(turn: &mut Turn<'_, '_>, number: ActionRunNumber) -> Outcome<()> {
    let Some(record) = turn.draft::<ActionRuns>(&number)? else {
        return Ok(());
    };
    let Some(completed_at_ms) = record.completed_at_ms else {
        return take_up_task(turn, None, Loaded { number, record });
    };
    let expiration = Expiration {
        due_ms: completed_at_ms.saturating_add(RETENTION_MS_DEFAULT),
        subject: Expiring::ActionRun(number),
    };
    Ok(retention::expire_again(turn, expiration)?)
}

/// Gives an open task its timer back, or its place in the queue.
fn take_up_task(
    turn: &mut Turn<'_, '_>,
    run: Option<&mut LoadedRun>,
    mut task: Loaded,
) -> Outcome<()> {
    if let Some(lease) = task.record.lease.clone() {
        let expires_at_ms = timer::restore(turn, lease_timer(&task, lease.expires_at_ms))?;
        if expires_at_ms != lease.expires_at_ms {
            task.record.lease = Some(Lease {
                expires_at_ms,
                ..lease
            });
            task.put(turn);
        }
        return Ok(());
    }
    if let Some(report) = task.record.report {
        let deadline_ms = timer::restore(turn, report_timer(&task, report.deadline_ms))?;
        if deadline_ms != report.deadline_ms {
            task.record.report = Some(AwaitedReport {
                deadline_ms,
                ..report
            });
            task.put(turn);
        }
        return Ok(());
    }
    if queue::is_waiting(turn, &task)? || is_put_off(turn, &task)? {
        return Ok(());
    }
    make_ready(turn, run, task.number)
}

/// Whether a timer will make the task ready. Where too many are set to find it among them, the task is
/// ready at once, and the timer finds it so.
fn is_put_off(turn: &Turn<'_, '_>, task: &Loaded) -> Result<bool, StoreError> {
    let wanted = (task.number.0, task.record.attempt);
    let kind = TimerKind::TaskReady;
    let mut is_found = false;
    let mut looked_at = 0;
    turn.visit_from::<Timers>(&kind, &(kind, turn.now_ms()), |timer, _| {
        is_found = (timer.subject, timer.detail) == wanted;
        looked_at += 1;
        if is_found || looked_at == TAKE_UP_TIMERS_LOOKED_AT_MAX {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(is_found)
}
