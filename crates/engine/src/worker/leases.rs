//! The leases that a worker holds, and when they end (A4).
//!
//! Almost every task is reported on long before its lease ends, so a lease has no timer: its worker has one, set for the
//! first lease that may end. The timer is never postponed; when it fires, it looks for what has ended.

use super::activity::{Counts, WorkerKey, WorkerRef, change, count_for_process, is_holder, key_of};
use crate::ids::{Namespace, WorkerNumber};
use crate::limits::LEASES_BEGUN_MAX;
use crate::store::{KeyRange, StoreError};
use crate::tables::{
    LEASE_SUSPENDED_MS, Lease, LeaseBlock, LeasePlace, LeaseWatch, Process, ProcessKind, TimerKey,
    TimerKind, WorkerActivityRecord, WorkerLeases,
};
use crate::task::LoadedTask;
use crate::timer;
use crate::turn::Turn;
use std::ops::ControlFlow;

/// A worker's number and its watch over its leases.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    pub(super) worker: WorkerNumber,
    pub(super) watch: LeaseWatch,
}

/// A registered worker takes a task. Returns the number under which its lease is listed.
pub(crate) fn begin_lease(
    turn: &mut Turn<'_, '_>,
    worker: WorkerRef<'_>,
    place: LeasePlace,
) -> Result<WorkerNumber, StoreError> {
    let key = key_of(worker);
    let watched = edit_watch(turn, &key, |activity| {
        if activity.leases_count == 0 {
            activity.lease_watch.ends_from_ms = place.expires_at_ms;
        }
        activity.leases_count += 1;
        follow(&mut activity.lease_watch, place);
    })?;
    let watched = watched.expect("only a registered worker takes tasks");
    turn.insert_member::<WorkerLeases>(&row_of(watched.worker, place), place.task)?;
    search_if_due(turn, &key, watched)?;
    Ok(watched.worker)
}

/// How a lease ends.
#[derive(Clone, Copy)]
pub(crate) enum LeaseEnd {
    /// With a report: the worker has completed the execution.
    Completed,
    /// With a failure, or without a report in time: the execution has failed.
    Failed,
    /// The task was taken from the worker: the execution does not count.
    Withdrawn,
}

impl LeaseEnd {
    fn counts(self) -> Option<Counts> {
        let (completed, failed) = match self {
            Self::Completed => (1, 0),
            Self::Failed => (0, 1),
            Self::Withdrawn => return None,
        };
        Some(Counts { completed, failed })
    }
}

/// The lease on a task ends. It counts, unless the process that held the task is gone.
pub(crate) fn end_lease(
    turn: &mut Turn<'_, '_>,
    task: &LoadedTask,
    lease: &Lease,
    end: LeaseEnd,
) -> Result<(), StoreError> {
    let row = row_of(lease.holder, lease.place(task.number));
    turn.remove_member::<WorkerLeases>(&row, task.number)?;
    let record = &task.record;
    let key = (record.namespace.clone(), lease.worker.clone());
    let counts = end.counts();
    let is_holder = change(turn, &key, |activity| {
        let is_holder = activity.number == lease.holder;
        if is_holder {
            activity.leases_count -= 1;
            if let Some(counts) = counts {
                counts.add_to(activity);
            }
        }
        is_holder
    })?;
    let Some(counts) = counts.filter(|_| is_holder == Some(true)) else {
        return Ok(());
    };
    let process = Process {
        name: record.action.to_string(),
        kind: ProcessKind::Action,
    };
    count_for_process(turn, key, process, counts)
}

/// Lets the lease on a task of the namespace end at another time. The lease of a process that is gone is about to be
/// freed, and stays as it is.
pub(crate) fn move_lease(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    lease: &mut Lease,
    place: LeasePlace,
) -> Result<(), StoreError> {
    let key = (namespace.clone(), lease.worker.clone());
    if !is_holder(turn, &key, lease)? {
        return Ok(());
    }
    let row = row_of(lease.holder, lease.place(place.task));
    turn.remove_member::<WorkerLeases>(&row, place.task)?;
    turn.insert_member::<WorkerLeases>(&row_of(lease.holder, place), place.task)?;
    lease.expires_at_ms = place.expires_at_ms;
    let watched = edit_watch(turn, &key, |activity| {
        follow(&mut activity.lease_watch, place);
    })?;
    let watched = watched.expect("the holder of a lease is registered");
    search_if_due(turn, &key, watched)
}

/// Clears the timer: the worker gets another number, or is removed.
pub(super) fn unwatch(turn: &mut Turn<'_, '_>, activity: &mut WorkerActivityRecord) {
    let watch = std::mem::take(&mut activity.lease_watch);
    if let Some(due_ms) = watch.due_ms {
        turn.clear_timer(timer_of(activity.number, due_ms));
    }
}

/// Restores the timer after quarantine (design rule 10).
pub(super) fn restore(
    turn: &mut Turn<'_, '_>,
    activity: &mut WorkerActivityRecord,
) -> Result<(), StoreError> {
    if let Some(due_ms) = activity.lease_watch.due_ms {
        let due_ms = timer::restore(turn, timer_of(activity.number, due_ms))?;
        activity.lease_watch.due_ms = Some(due_ms);
    }
    Ok(())
}

/// Follows a lease that begins, or that ends at another time.
fn follow(watch: &mut LeaseWatch, place: LeasePlace) {
    watch.begun_count += 1;
    watch.ends_from_ms = watch.ends_from_ms.min(place.expires_at_ms);
    bring_forward(watch, place.expires_at_ms);
}

fn bring_forward(watch: &mut LeaseWatch, expires_at_ms: u64) {
    if expires_at_ms != LEASE_SUSPENDED_MS {
        let due_ms = watch.due_ms.unwrap_or(expires_at_ms);
        watch.due_ms = Some(due_ms.min(expires_at_ms));
    }
}

/// Changes the activity of a worker, and the timer of its leases accordingly; does nothing if the worker has
/// deregistered.
fn edit_watch(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
    edit: impl FnOnce(&mut WorkerActivityRecord),
) -> Result<Option<Watched>, StoreError> {
    let changed = change(turn, key, |activity| {
        let due_before_ms = activity.lease_watch.due_ms;
        edit(activity);
        let watched = Watched {
            worker: activity.number,
            watch: activity.lease_watch,
        };
        (due_before_ms, watched)
    })?;
    let Some((due_before_ms, watched)) = changed else {
        return Ok(None);
    };
    let Watched { worker, watch } = watched;
    if due_before_ms != watch.due_ms {
        if let Some(due_ms) = due_before_ms {
            turn.clear_timer(timer_of(worker, due_ms));
        }
        if let Some(due_ms) = watch.due_ms {
            turn.set_timer(timer_of(worker, due_ms));
        }
    }
    Ok(Some(watched))
}

/// Raises the bound if many leases may have left tombstones behind it.
fn search_if_due(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
    watched: Watched,
) -> Result<(), StoreError> {
    if watched.watch.begun_count < LEASES_BEGUN_MAX {
        return Ok(());
    }
    search(turn, key, watched)
}

/// Raises the bound to the first lease that ends, and sets the timer for it.
pub(super) fn search(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
    Watched { worker, watch }: Watched,
) -> Result<(), StoreError> {
    let from = row_of(worker, LeasePlace::first_from(watch.ends_from_ms));
    let first = turn.first_key_from::<WorkerLeases>(&worker, &from)?;
    let first_ms = first.map_or(LEASE_SUSPENDED_MS, |(_, block)| block.expires_at_ms);
    let now_ms = turn.now_ms();
    edit_watch(turn, key, |activity| {
        activity.lease_watch.ends_from_ms = first_ms;
        activity.lease_watch.begun_count = 0;
        bring_forward(&mut activity.lease_watch, first_ms.max(now_ms));
    })?;
    Ok(())
}

/// Visits the places of leases in `range`, a range of keys, in order, until `visit` breaks.
pub(super) fn visit(
    turn: &Turn<'_, '_>,
    range: &KeyRange,
    mut visit: impl FnMut(LeasePlace) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    turn.visit_range::<WorkerLeases>(range, |(_, block), tasks| {
        block.places(*tasks).try_for_each(&mut visit)
    })
}

/// The key of the row that lists a worker's lease.
pub(super) fn row_of(worker: WorkerNumber, place: LeasePlace) -> (WorkerNumber, LeaseBlock) {
    (worker, LeaseBlock::of(place))
}

fn timer_of(worker: WorkerNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::LeaseExpiry,
        due_ms,
        subject: worker.0,
        detail: 0,
    }
}
