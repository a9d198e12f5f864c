//! Registering a worker (A20).

use super::activity::{self, WorkerKey};
use super::health::{unwatch, watch};
use crate::ids::{ActionRunNumber, Namespace, NodeId, WorkerId, WorkerNumber};
use crate::json::Json;
use crate::limits::WORKERS_MAX;
use crate::rejection::Rejection;
use crate::reply::HeartbeatRecorded;
use crate::store::StoreError;
use crate::tables::{
    Process, SilentWorkers, WorkerActivities, WorkerActivityRecord, WorkerCounts, WorkerNumbers,
    WorkerRecord, WorkerState, WorkerType, Workers,
};
use crate::task;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Registers a worker, or replaces its registration.
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
        let (number, registered_at_ms) = match &existing {
            Some(existing) => (existing.number, existing.registered_at_ms),
            None => (self.admit(turn, namespace)?, now_ms),
        };
        turn.put::<Workers>(&key, self.record(number, registered_at_ms));
        let activity = turn
            .get::<WorkerActivities>(&key)?
            .map(Arc::unwrap_or_clone);
        let mut activity = activity.unwrap_or_else(|| fresh(now_ms));
        let leases = activity.leases.clone();
        activity.state = WorkerState::Healthy;
        activity.is_draining = false;
        activity.load = 0;
        activity.last_heartbeat_at_ms = now_ms;
        watch(turn, number, &mut activity);
        activity::save(turn, &key, activity)?;
        if existing.is_some_and(|existing| existing.incarnation != self.incarnation) {
            for task in leases {
                task::release(turn, task)?;
            }
        }
        Ok(HeartbeatRecorded { is_draining: false })
    }

    fn record(&self, number: WorkerNumber, registered_at_ms: u64) -> WorkerRecord {
        WorkerRecord {
            number,
            incarnation: self.incarnation,
            kind: self.kind,
            max_concurrency: self.max_concurrency,
            processes: self.processes.clone(),
            labels: self.labels.clone(),
            metadata: self.metadata.clone(),
            machine_id: self.machine_id.clone(),
            node: self.node,
            registered_at_ms,
        }
    }

    /// Makes room for a new worker: at the limit, the unhealthy worker without leases that has been silent longest is
    /// evicted (A20).
    fn admit(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<WorkerNumber> {
        if count(turn, namespace)? >= WORKERS_MAX {
            let silent = turn.list::<SilentWorkers>(namespace, 1)?.into_iter().next();
            let ((_, _, longest), _) =
                silent.ok_or_else(|| Rejection::WorkerLimitExceeded(namespace.clone()))?;
            remove(turn, &(namespace.clone(), longest))?;
        }
        let workers_count = count(turn, namespace)? + 1;
        turn.put::<WorkerCounts>(namespace, workers_count);
        let number = WorkerNumber(turn.next_number(|cluster| &mut cluster.workers_count)?);
        turn.put::<WorkerNumbers>(&number, (namespace.clone(), self.worker_id.clone()));
        Ok(number)
    }
}

/// How many workers the namespace has.
fn count(turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Result<u64, StoreError> {
    let count = turn.get::<WorkerCounts>(namespace)?;
    Ok(count.map_or(0, |count| *count))
}

fn fresh(now_ms: u64) -> WorkerActivityRecord {
    WorkerActivityRecord {
        state: WorkerState::Healthy,
        is_draining: false,
        load: 0,
        last_heartbeat_at_ms: now_ms,
        silence_due_ms: None,
        leases: Vec::new(),
        tasks_completed: 0,
        tasks_failed: 0,
        processes: BTreeMap::new(),
    }
}

/// Removes at most `count_max` unhealthy workers without leases from a namespace: they are listed for people only and
/// do not keep a namespace from deletion (A41). Returns how many.
pub(crate) fn remove_unhealthy(
    turn: &mut Turn<'_, '_>,
    namespace: &Namespace,
    count_max: usize,
) -> Result<usize, StoreError> {
    let silent = turn.list::<SilentWorkers>(namespace, count_max)?;
    let count = silent.len();
    for ((_, _, worker_id), _) in silent {
        remove(turn, &(namespace.clone(), worker_id))?;
    }
    Ok(count)
}

/// Removes a worker's rows; returns the tasks that it held.
pub(super) fn remove(
    turn: &mut Turn<'_, '_>,
    key: &WorkerKey,
) -> Result<Vec<ActionRunNumber>, StoreError> {
    let Some(record) = turn.get::<Workers>(key)? else {
        return Ok(Vec::new());
    };
    turn.delete::<Workers>(key);
    turn.delete::<WorkerNumbers>(&record.number);
    match count(turn, &key.0)? {
        0 | 1 => turn.delete::<WorkerCounts>(&key.0),
        workers_count => turn.put::<WorkerCounts>(&key.0, workers_count - 1),
    }
    let Some(mut activity) = activity::delete(turn, key)? else {
        return Ok(Vec::new());
    };
    unwatch(turn, record.number, &mut activity);
    Ok(activity.leases)
}
