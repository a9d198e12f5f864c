//! The activity of workers: written here, and by every task that they take and finish.

use crate::ids::{GroupRef, Namespace, WorkerId};
use crate::store::StoreError;
use crate::tables::{
    Lease, Process, ProcessKind, SilentWorkers, WorkerActivities, WorkerActivityRecord,
    WorkerProcesses,
};
use crate::turn::Turn;
use std::sync::Arc;

/// A worker by namespace and id.
pub(crate) type WorkerRef<'a> = (&'a Namespace, &'a WorkerId);

/// The same, as the key of its rows.
pub(super) type WorkerKey = (Namespace, WorkerId);

/// How executions of one process ended.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    /// Tasks that were completed, or records that were acknowledged.
    pub(crate) completed: u64,
    /// Tasks that failed, or records that came back.
    pub(crate) failed: u64,
}

impl Counts {
    /// Counts for the worker.
    pub(super) fn add_to(self, activity: &mut WorkerActivityRecord) {
        activity.tasks_completed += self.completed;
        activity.tasks_failed += self.failed;
    }
}

/// Whether the worker is registered and does not drain (A21).
pub(crate) fn is_taking_tasks(
    turn: &mut Turn<'_, '_>,
    worker: WorkerRef<'_>,
) -> Result<bool, StoreError> {
    let activity = turn.get::<WorkerActivities>(&key_of(worker))?;
    Ok(activity.is_some_and(|activity| !activity.status.is_draining()))
}

/// Counts records of a group, by whether they were acknowledged or came back (A20).
pub(crate) fn count_records(
    turn: &mut Turn<'_, '_>,
    worker: WorkerRef<'_>,
    group: &GroupRef,
    counts: Counts,
) -> Result<(), StoreError> {
    let process = Process {
        name: format!("{}/{}", group.stream, group.group),
        kind: ProcessKind::StreamConsumer,
    };
    add_counts(turn, key_of(worker), process, counts)
}

/// Counts for the worker, and for the process if the worker has registered it.
fn add_counts(
    turn: &mut Turn<'_, '_>,
    key: WorkerKey,
    process: Process,
    counts: Counts,
) -> Result<(), StoreError> {
    change(turn, &key, |activity| counts.add_to(activity))?;
    count_for_process(turn, key, process, counts)
}

/// Counts for the process, if the worker has registered it.
pub(super) fn count_for_process(
    turn: &mut Turn<'_, '_>,
    key: WorkerKey,
    process: Process,
    counts: Counts,
) -> Result<(), StoreError> {
    let now_ms = turn.now_ms();
    turn.edit::<WorkerProcesses, _>(&(key.0, key.1, process), |record| {
        record.run_count += counts.completed;
        record.fail_count += counts.failed;
        record.last_run_at_ms = Some(now_ms);
    })?;
    Ok(())
}

/// Whether the worker is registered and drains (A21).
pub(crate) fn is_draining(
    turn: &mut Turn<'_, '_>,
    worker: WorkerRef<'_>,
) -> Result<bool, StoreError> {
    let activity = turn.get::<WorkerActivities>(&key_of(worker))?;
    Ok(activity.is_some_and(|activity| activity.status.is_draining()))
}

/// Whether the lease counts for the worker: it is not one that a former process left behind.
pub(super) fn is_holder(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
    lease: &Lease,
) -> Result<bool, StoreError> {
    let activity = turn.get::<WorkerActivities>(key)?;
    Ok(activity.is_some_and(|activity| activity.number == lease.holder))
}

pub(super) fn key_of((namespace, worker): WorkerRef<'_>) -> WorkerKey {
    (namespace.clone(), worker.clone())
}

/// Changes a worker's activity; does nothing if the worker has deregistered.
pub(super) fn change<R>(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
    edit: impl FnOnce(&mut WorkerActivityRecord) -> R,
) -> Result<Option<R>, StoreError> {
    let changed = turn.edit::<WorkerActivities, _>(key, |activity| {
        let before = silent_since(activity);
        let result = edit(activity);
        (before, silent_since(activity), result)
    })?;
    Ok(changed.map(|(before, after, result)| {
        move_among_silent(turn, key, before, after);
        result
    }))
}

/// Writes a worker's activity.
pub(super) fn save(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
    activity: WorkerActivityRecord,
) -> Result<(), StoreError> {
    let before = turn.get::<WorkerActivities>(key)?;
    let before = before.and_then(|before| silent_since(&before));
    move_among_silent(turn, key, before, silent_since(&activity));
    turn.put::<WorkerActivities>(key, activity);
    Ok(())
}

/// Deletes a worker's activity, and hands it out.
pub(super) fn delete(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
) -> Result<Option<WorkerActivityRecord>, StoreError> {
    let Some(activity) = turn.get::<WorkerActivities>(key)? else {
        return Ok(None);
    };
    move_among_silent(turn, key, silent_since(&activity), None);
    turn.delete::<WorkerActivities>(key);
    Ok(Some(Arc::unwrap_or_clone(activity)))
}

/// Since when a worker that may be evicted for a new one was unhealthy, in milliseconds (A20).
fn silent_since(activity: &WorkerActivityRecord) -> Option<u64> {
    let may_go = !activity.status.is_healthy() && activity.leases_count == 0;
    may_go.then_some(activity.last_heartbeat_at_ms)
}

fn move_among_silent(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
    before: Option<u64>,
    after: Option<u64>,
) {
    let (namespace, worker) = key;
    if before == after {
        return;
    }
    let row = |last_heartbeat_at_ms| (namespace.clone(), last_heartbeat_at_ms, worker.clone());
    if let Some(last_heartbeat_at_ms) = before {
        turn.delete::<SilentWorkers>(&row(last_heartbeat_at_ms));
    }
    if let Some(last_heartbeat_at_ms) = after {
        turn.put::<SilentWorkers>(&row(last_heartbeat_at_ms), ());
    }
}
