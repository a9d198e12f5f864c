//! Registering a worker (A20).

use super::activity::{self, WorkerKey};
use super::gone::{detach_leases, free_leases, new_number};
use super::health::{unwatch, watch};
use super::leases;
use super::processes;
use crate::access::Actor;
use crate::ids::{Namespace, NodeId, WorkerId, WorkerNumber};
use crate::json::Json;
use crate::limits::{REPLACED_PROCESSES_MAX, WORKERS_MAX};
use crate::quota::{self, QuotaDimension};
use crate::quota_rejection::QuotaRejection;
use crate::rejection::Rejection;
use crate::reply::HeartbeatRecorded;
use crate::store::StoreError;
use crate::tables::{
    HeldTasks, LeaseWatch, Process, SilentWorkers, WorkerActivities, WorkerActivityRecord,
    WorkerCounts, WorkerNumbers, WorkerOwner, WorkerRecord, WorkerStatus, WorkerType, Workers,
};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Registers a worker, or replaces its registration. A newer process takes the id from an older one. A process that was
/// replaced does not take it back while the newer one is healthy: its registration may have been late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterWorker {
    /// Its id.
    pub worker_id: WorkerId,
    /// A random number of the worker's process: a new one frees the old one's leases (A4).
    pub incarnation: u64,
    /// What kind of tasks it takes.
    pub kind: WorkerType,
    /// Tasks that it runs concurrently.
    pub max_concurrency: u32,
    /// What it handles.
    pub processes: Vec<Process>,
    /// What it may be chosen by (A3).
    pub labels: BTreeMap<String, String>,
    /// Anything, for people.
    pub metadata: Option<Json>,
    /// Groups the workers of one machine.
    pub machine_id: Option<String>,
    /// The node that it is a part of, for an embedded worker.
    pub node: Option<NodeId>,
}

impl RegisterWorker {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<HeartbeatRecorded> {
        let key = (namespace.clone(), self.worker_id.clone());
        let now_ms = turn.now_ms();
        let existing = turn.get::<Workers>(&key)?;
        let mut activity = match turn.get::<WorkerActivities>(&key)? {
            Some(activity) => Arc::unwrap_or_clone(activity),
            None => fresh(self.admit(turn, &key)?, now_ms),
        };
        let mut former = None;
        let mut record = self.record(WorkerOwner::of_actor(turn)?, now_ms);
        if let Some(existing) = existing {
            record.registered_at_ms = existing.registered_at_ms;
            record.replaced = existing.replaced.clone();
            if !existing
                .owner
                .allows_takeover_by(&record.owner, activity.status.is_healthy())
            {
                return Err(Rejection::WorkerIdTaken(self.worker_id.clone()).into());
            }
            if existing.incarnation != self.incarnation {
                self.replace(&existing, activity.status, &mut record.replaced)?;
                let number = detach_leases(turn, &key, &mut activity)?;
                former = number.map(|number| (number, held_by(&existing)));
            }
        }
        turn.put::<Workers>(&key, record);
        processes::follow(turn, &key, &self.processes)?;
        activity.become_status(WorkerStatus::Healthy);
        activity.load = 0;
        activity.last_heartbeat_at_ms = now_ms;
        watch(turn, &mut activity);
        activity::save(turn, &key, activity)?;
        if let Some((number, held)) = former {
            free_leases(turn, number, key, held)?;
        }
        Ok(HeartbeatRecorded { is_draining: false })
    }

    /// Takes the id from another process, and remembers it among those that were replaced.
    ///
    /// # Errors
    /// [`Rejection::WorkerReplaced`] if that process is the newer one, and healthy.
    fn replace(
        &self,
        existing: &WorkerRecord,
        status: WorkerStatus,
        replaced: &mut Vec<u64>,
    ) -> Result<(), Rejection> {
        if status.is_healthy() && replaced.contains(&self.incarnation) {
            return Err(Rejection::WorkerReplaced(self.worker_id.clone()));
        }
        replaced.retain(|incarnation| *incarnation != self.incarnation);
        replaced.push(existing.incarnation);
        let excess = replaced.len().saturating_sub(REPLACED_PROCESSES_MAX);
        replaced.drain(..excess);
        Ok(())
    }

    fn record(&self, owner: WorkerOwner, registered_at_ms: u64) -> WorkerRecord {
        WorkerRecord {
            incarnation: self.incarnation,
            replaced: Vec::new(),
            kind: self.kind,
            max_concurrency: self.max_concurrency,
            processes: self.processes.clone(),
            labels: self.labels.clone(),
            metadata: self.metadata.clone(),
            machine_id: self.machine_id.clone(),
            node: self.node,
            owner,
            registered_at_ms,
        }
    }

    /// Makes room for a new worker: at the limit, the unhealthy worker without leases that has been silent longest is
    /// evicted (A20).
    fn admit(&self, turn: &mut Turn<'_, '_>, key: &WorkerKey) -> TurnResult<WorkerNumber> {
        let namespace = &key.0;
        if let Some(limit) = full(turn, namespace)? {
            let silent = turn.list::<SilentWorkers>(namespace, 1)?.into_iter().next();
            let ((_, _, longest), _) = silent.ok_or(limit)?;
            remove(turn, &(namespace.clone(), longest))?;
        }
        turn.note_use(namespace, QuotaDimension::Workers, 1);
        let workers_count = count(turn, namespace)? + 1;
        turn.put::<WorkerCounts>(namespace, workers_count);
        Ok(new_number(turn, key)?)
    }
}

/// What becomes of the tasks that a replaced process held. A node that stops returns its tasks first, so one that still
/// holds some has died.
fn held_by(replaced: &WorkerRecord) -> HeldTasks {
    match replaced.node {
        Some(_) => HeldTasks::Lost,
        None => HeldTasks::Returned,
    }
}

/// Why the namespace may have no further worker, if it may not. Workers of the cluster itself need no quota.
fn full(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Option<Rejection>> {
    if count(turn, namespace)? >= WORKERS_MAX {
        return Ok(Some(Rejection::WorkerLimitExceeded(namespace.clone())));
    }
    if turn.actor() == Actor::System {
        return Ok(None);
    }
    let exceeded = quota::refusal(turn, namespace, &[(QuotaDimension::Workers, 1)])?;
    Ok(exceeded.map(|exceeded| QuotaRejection::Exceeded(Box::new(exceeded)).into()))
}

/// How many workers the namespace has.
fn count(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Result<u64, StoreError> {
    let count = turn.get::<WorkerCounts>(namespace)?;
    Ok(count.map_or(0, |count| *count))
}

fn fresh(number: WorkerNumber, now_ms: u64) -> WorkerActivityRecord {
    WorkerActivityRecord {
        number,
        status: WorkerStatus::Healthy,
        load: 0,
        last_heartbeat_at_ms: now_ms,
        silence_due_ms: None,
        leases_count: 0,
        lease_watch: LeaseWatch::default(),
        tasks_completed: 0,
        tasks_failed: 0,
    }
}

/// Removes unhealthy workers without leases from a namespace, until about `rows_max` rows are deleted: they are listed
/// for people only and do not keep a namespace from deletion (A41). Returns the number of deleted rows, which is at
/// least `rows_max` if some may remain.
pub(crate) fn remove_unhealthy(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    rows_max: usize,
) -> Result<usize, StoreError> {
    let mut rows_count = 0;
    for (_, _, worker_id) in turn.keys::<SilentWorkers>(namespace, rows_max)? {
        if rows_count >= rows_max {
            break;
        }
        rows_count += remove(turn, &(namespace.clone(), worker_id))?.rows_count;
    }
    Ok(rows_count)
}

/// What the removal of a worker leaves to its caller.
#[derive(Default)]
pub(super) struct Removed {
    /// Its number, if it held leases: they are to be freed.
    pub(super) former: Option<WorkerNumber>,
    /// How many rows were deleted, counting those that each worker has as one.
    rows_count: usize,
}

/// Removes a worker's rows.
pub(super) fn remove(turn: &mut Turn<'_, '_>, key: &WorkerKey) -> Result<Removed, StoreError> {
    let Some(mut activity) = activity::delete(turn, key)? else {
        return Ok(Removed::default());
    };
    unwatch(turn, &mut activity);
    leases::unwatch(turn, &mut activity);
    turn.delete::<Workers>(key);
    turn.delete::<WorkerNumbers>(&activity.number);
    turn.note_use(&key.0, QuotaDimension::Workers, -1);
    match count(turn, &key.0)? {
        0 | 1 => turn.delete::<WorkerCounts>(&key.0),
        workers_count => turn.put::<WorkerCounts>(&key.0, workers_count - 1),
    }
    let rows_count = 1 + processes::delete(turn, key)?;
    Ok(Removed {
        former: (activity.leases_count > 0).then_some(activity.number),
        rows_count,
    })
}
