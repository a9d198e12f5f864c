//! Releases tasks from quarantine: restores the end of the lease, the timer or the queue position that a task lost
//! (design rule 10).

use super::end::end_cancelled_in;
use super::lease::{drop_lease, report_timer, set_end};
use super::loaded::LoadedTask;
use super::ready::make_ready;
use super::{queue, wait};
use crate::ids::ActionRunNumber;
use crate::limits::{RELEASE_TIMERS_READ_MAX, RETENTION_MS_DEFAULT};
use crate::store::StoreError;
use crate::tables::{
    ActionRunStatus, ActionRuns, Awaited, AwaitedReport, Expiration, Expiring, TargetResult,
    TimerKind, Timers,
};
use crate::turn::{LoadedRun, Turn, TurnResult};
use crate::{retention, timer, worker};
use std::ops::ControlFlow;

/// Releases a step's action run; returns its target result if it has ended meanwhile.
pub(crate) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    number: ActionRunNumber,
) -> TurnResult<Option<TargetResult>> {
    let Some(record) = turn.draft::<ActionRuns>(&number)? else {
        return Ok(None);
    };
    if record.status.is_open() {
        let mut task = LoadedTask { number, record };
        if task.record.is_cancelling && is_worker_gone(turn, &task)? {
            drop_lease(turn, &mut task, worker::LeaseEnd::Withdrawn)?;
            return Ok(Some(end_cancelled_in(turn, run, task)?));
        }
        release_task(turn, Some(run), task)?;
        return Ok(None);
    }
    let error = record.error.as_ref();
    Ok(record.outcome.as_ref().map(|outcome| TargetResult {
        from: Awaited::Action(number),
        output: record.output,
        reason: error.map(|error| error.describe(outcome)),
        // While reports were rejected, only its timer could end it.
        is_retryable: true,
        ..TargetResult::of_engine(outcome.clone())
    }))
}

/// Whether the worker that holds a task is gone.
fn is_worker_gone(turn: &mut Turn<'_, '_>, task: &LoadedTask) -> Result<bool, StoreError> {
    match &task.record.lease {
        Some(lease) => worker::is_gone(turn, lease.holder),
        None => Ok(false),
    }
}

/// Releases a stand-alone action run; the retention of an ended one starts again.
pub(crate) fn release_stand_alone(
    turn: &mut Turn<'_, '_>,
    number: ActionRunNumber,
) -> TurnResult<()> {
    let Some(record) = turn.draft::<ActionRuns>(&number)? else {
        return Ok(());
    };
    let Some(completed_at_ms) = record.completed_at_ms else {
        return release_task(turn, None, LoadedTask { number, record });
    };
    let expiration = Expiration {
        due_ms: completed_at_ms.saturating_add(RETENTION_MS_DEFAULT),
        subject: Expiring::ActionRun(number),
    };
    Ok(retention::expire_again(turn, expiration)?)
}

/// Restores an open task's timer or its place in the queue.
fn release_task(
    turn: &mut Turn<'_, '_>,
    run: Option<&mut LoadedRun>,
    mut task: LoadedTask,
) -> TurnResult<()> {
    if let Some(lease) = task.record.lease.clone() {
        if is_worker_gone(turn, &task)? {
            drop_lease(turn, &mut task, worker::LeaseEnd::Withdrawn)?;
            task.record.become_status(ActionRunStatus::Pending);
            return make_ready(turn, run, task);
        }
        if lease.is_suspended() {
            let now_ms = turn.now_ms();
            set_end(turn, task, now_ms)?;
        }
        return Ok(());
    }
    if let Some(report) = task.record.report {
        if let Some(before_ms) = report.deadline_at_ms {
            let deadline_at_ms = timer::restore(turn, report_timer(&task, before_ms))?;
            if deadline_at_ms != before_ms {
                task.record.report = Some(AwaitedReport {
                    deadline_at_ms: Some(deadline_at_ms),
                    ..report
                });
                task.put(turn);
            }
        }
        return Ok(());
    }
    wait::restore(turn, &mut task)?;
    let is_waiting = queue::is_waiting(turn, &task)? || is_deferred(turn, &task)?;
    if is_waiting {
        task.put(turn);
        return Ok(());
    }
    make_ready(turn, run, task)
}

/// Whether a timer will make the task ready. If too many timers are set to find it among them, the task becomes ready
/// immediately, and the timer has no effect.
fn is_deferred(turn: &Turn<'_, '_>, task: &LoadedTask) -> Result<bool, StoreError> {
    let wanted = (task.number.0, u64::from(task.record.attempt));
    let kind = TimerKind::TaskReady;
    let mut is_found = false;
    let mut looked_at = 0;
    turn.visit_from::<Timers>(&kind, &(kind, turn.now_ms()), |timer, _| {
        is_found = (timer.subject, timer.detail) == wanted;
        looked_at += 1;
        if is_found || looked_at == RELEASE_TIMERS_READ_MAX {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(is_found)
}
