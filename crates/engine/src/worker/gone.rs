//! Frees the leases of workers that are gone (A4). Tasks of an embedded worker whose node died lose the attempt: a task
//! that kills its node would otherwise kill one node after the other.
//!
//! Leases are listed by the number of the worker that took them. Once its process is gone, they stay under that number,
//! and a worker that continues under the same id gets a new number. So a turn frees only some of them, a timer frees the
//! rest in later turns, and tasks that the worker takes meanwhile are not among them. Until a lease is freed, its token
//! is valid: what the former process still reports counts.

use super::activity::WorkerKey;
use super::health::unwatch;
use super::leases;
use crate::ids::WorkerNumber;
use crate::limits::LEASES_FREED_MAX;
use crate::store::StoreError;
use crate::subject::Subject;
use crate::tables::{
    GoneWorkerRecord, GoneWorkers, HeldTasks, LeasePlace, TimerKey, TimerKind,
    WorkerActivityRecord, WorkerLeases, WorkerNumbers, range_from,
};
use crate::turn::{Turn, TurnResult};
use crate::{task, timer};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The next number for a worker.
pub(super) fn new_number(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
) -> Result<WorkerNumber, StoreError> {
    let number = WorkerNumber(turn.next_number(|cluster| &mut cluster.workers_count));
    turn.put::<WorkerNumbers>(&number, key.clone());
    Ok(number)
}

/// Detaches a continuing worker from its leases: if it holds any, it gets another number. Returns the former one,
/// whose leases are to be freed once the activity is written.
pub(super) fn detach_leases(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
    activity: &mut WorkerActivityRecord,
) -> Result<Option<WorkerNumber>, StoreError> {
    if activity.leases_count == 0 {
        return Ok(None);
    }
    unwatch(turn, activity);
    leases::unwatch(turn, activity);
    let former = activity.number;
    turn.delete::<WorkerNumbers>(&former);
    activity.number = new_number(turn, key)?;
    activity.leases_count = 0;
    Ok(Some(former))
}

/// Frees the first leases under a number that no worker has now; a timer frees the rest.
pub(super) fn free_leases(
    turn: &mut Turn<'_, '_>,
    number: WorkerNumber,
    key: WorkerKey,
    held: HeldTasks,
) -> TurnResult<()> {
    let first = LeasePlace::first_from(0);
    let Some(next) = free_batch(turn, number, first, held)? else {
        return Ok(());
    };
    let due_ms = turn.now_ms();
    let (namespace, worker) = key;
    let gone = GoneWorkerRecord {
        namespace,
        worker,
        held,
        next,
        due_ms,
    };
    turn.put::<GoneWorkers>(&number, gone);
    turn.set_timer(timer_of(number, due_ms));
    Ok(())
}

/// Handles the timer of a worker that is gone: frees further leases.
pub(crate) fn free_leases_left(turn: &mut Turn<'_, '_>, number: WorkerNumber) -> TurnResult<()> {
    let Some(gone) = turn.get::<GoneWorkers>(&number)? else {
        return Ok(());
    };
    let Some(next) = free_batch(turn, number, gone.next, gone.held)? else {
        turn.delete::<GoneWorkers>(&number);
        return Ok(());
    };
    let due_ms = turn.now_ms();
    let gone = GoneWorkerRecord {
        next,
        due_ms,
        ..Arc::unwrap_or_clone(gone)
    };
    turn.put::<GoneWorkers>(&number, gone);
    turn.set_timer(timer_of(number, due_ms));
    Ok(())
}

/// Restores the timer of a worker that is gone, after quarantine (design rule 10).
pub(super) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    number: WorkerNumber,
) -> TurnResult<()> {
    let Some(gone) = turn.get::<GoneWorkers>(&number)? else {
        return Ok(());
    };
    let due_ms = timer::restore(turn, timer_of(number, gone.due_ms))?;
    let gone = GoneWorkerRecord {
        due_ms,
        ..Arc::unwrap_or_clone(gone)
    };
    turn.put::<GoneWorkers>(&number, gone);
    Ok(())
}

/// Whether no worker has this number any longer.
pub(crate) fn is_gone(turn: &mut Turn<'_, '_>, number: WorkerNumber) -> Result<bool, StoreError> {
    Ok(turn.get::<WorkerNumbers>(&number)?.is_none())
}

/// Frees leases from `first` on, as far as the turn's budget allows. Returns the first one that is left.
fn free_batch(
    turn: &mut Turn<'_, '_>,
    number: WorkerNumber,
    first: LeasePlace,
    held: HeldTasks,
) -> TurnResult<Option<LeasePlace>> {
    let mut places = Vec::new();
    let range = range_from::<WorkerLeases>(&number, &leases::row_of(number, first));
    leases::visit(turn, &range, |place| {
        if place < first {
            return ControlFlow::Continue(());
        }
        places.push(place);
        if places.len() <= LEASES_FREED_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    for (position, place) in places.into_iter().enumerate() {
        if position == LEASES_FREED_MAX || turn.is_spent() {
            return Ok(Some(place));
        }
        let task = place.task;
        turn.with_subject(Subject::ActionRun(task), |turn| match held {
            HeldTasks::Returned => task::release(turn, task),
            HeldTasks::Lost => task::lose(turn, task),
        })?;
    }
    Ok(None)
}

fn timer_of(worker: WorkerNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::WorkerGone,
        due_ms,
        subject: worker.0,
        detail: 0,
    }
}
