//! The activity of workers: written here, and by every task that they take and finish.

use crate::ids::{ActionName, ActionRunNumber, GroupRef, Namespace, WorkerId};
use crate::store::StoreError;
use crate::tables::{SilentWorkers, WorkerActivities, WorkerActivityRecord, WorkerState};
use crate::turn::Turn;
use std::sync::Arc;

/// A worker by namespace and id.
pub(crate) type WorkerRef<'a> = (&'a Namespace, &'a WorkerId);

/// The same, as the key of its rows.
pub(super) type WorkerKey = (Namespace, WorkerId);

/// Whether the worker is registered and does not drain (A21).
pub(crate) fn is_taking_tasks(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    worker: &WorkerId,
) -> Result<bool, StoreError> {
    let key = (namespace.clone(), worker.clone());
    Ok(turn
        .get::<WorkerActivities>(&key)?
        .is_some_and(|activity| !activity.is_draining))
}

/// The worker takes a task.
pub(crate) fn add_held_task(
    turn: &mut Turn<'_, '_>,
    worker: WorkerRef<'_>,
    task: ActionRunNumber,
) -> Result<(), StoreError> {
    change(turn, worker, |activity| activity.leases.push(task))
}

/// The worker no longer holds a task.
pub(crate) fn remove_held_task(
    turn: &mut Turn<'_, '_>,
    worker: WorkerRef<'_>,
    task: ActionRunNumber,
) -> Result<(), StoreError> {
    change(turn, worker, |activity| {
        activity.leases.retain(|held| *held != task)
    })
}

/// Counts an execution of `action` by how it ended.
pub(crate) fn count(
    turn: &mut Turn<'_, '_>,
    worker: WorkerRef<'_>,
    action: &ActionName,
    is_success: bool,
) -> Result<(), StoreError> {
    let now_ms = turn.now_ms();
    change(turn, worker, |activity| {
        let process = activity
            .processes
            .entry(action.as_str().to_owned())
            .or_default();
        process.last_run_at_ms = Some(now_ms);
        if is_success {
            process.run_count += 1;
            activity.tasks_completed += 1;
        } else {
            process.fail_count += 1;
            activity.tasks_failed += 1;
        }
    })
}

/// Counts records of a group, by whether they were acknowledged or came back (A20).
pub(crate) fn count_records(
    turn: &mut Turn<'_, '_>,
    worker: WorkerRef<'_>,
    (group, (acked, nacked)): (&GroupRef, (u64, u64)),
) -> Result<(), StoreError> {
    let now_ms = turn.now_ms();
    let name = format!("{}/{}", group.stream, group.group);
    change(turn, worker, |activity| {
        let process = activity.processes.entry(name).or_default();
        process.last_run_at_ms = Some(now_ms);
        process.run_count += acked;
        process.fail_count += nacked;
        activity.tasks_completed += acked;
        activity.tasks_failed += nacked;
    })
}

/// Whether the worker is registered and drains (A21).
pub(crate) fn is_draining(
    turn: &mut Turn<'_, '_>,
    (namespace, worker): WorkerRef<'_>,
) -> Result<bool, StoreError> {
    let activity = turn.get::<WorkerActivities>(&(namespace.clone(), worker.clone()))?;
    Ok(activity.is_some_and(|activity| activity.is_draining))
}

/// Changes a worker's activity; does nothing if the worker has deregistered.
fn change(
    turn: &mut Turn<'_, '_>,
    (namespace, worker): WorkerRef<'_>,
    edit: impl FnOnce(&mut WorkerActivityRecord),
) -> Result<(), StoreError> {
    let key = (namespace.clone(), worker.clone());
    let changed = turn.edit::<WorkerActivities, _>(&key, |activity| {
        let before = silent_since(activity);
        edit(activity);
        (before, silent_since(activity))
    })?;
    if let Some((before, after)) = changed {
        move_among_silent(turn, &key, before, after);
    }
    Ok(())
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
    let may_go = activity.state == WorkerState::Unhealthy && activity.leases.is_empty();
    may_go.then_some(activity.last_heartbeat_at_ms)
}

fn move_among_silent(
    turn: &mut Turn<'_, '_>,
    (namespace, worker): &WorkerKey,
    before: Option<u64>,
    after: Option<u64>,
) {
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
