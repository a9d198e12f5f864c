//! Worker heartbeats (A20).

use super::activity::save;
use super::health::watch;
use crate::ids::{Namespace, WorkerId};
use crate::rejection::Rejection;
use crate::reply::HeartbeatRecorded;
use crate::tables::{WorkerActivities, WorkerOwner, Workers};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Keeps a worker healthy and reports its load; the reply says whether it should drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatWorker {
    /// The worker.
    pub worker_id: WorkerId,
    /// The worker's OS process; a replaced process is rejected.
    pub incarnation: u64,
    /// Tasks in flight.
    pub load: u32,
}

impl HeartbeatWorker {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<HeartbeatRecorded> {
        let key = (namespace.clone(), self.worker_id.clone());
        let unknown = || Rejection::WorkerNotFound(self.worker_id.clone());
        let worker = turn.get::<Workers>(&key)?.ok_or_else(unknown)?;
        if worker.incarnation != self.incarnation {
            return Err(Rejection::WorkerReplaced(self.worker_id.clone()).into());
        }
        if worker.owner != WorkerOwner::Anyone && worker.owner != WorkerOwner::of_actor(turn)? {
            return Err(Rejection::WorkerIdTaken(self.worker_id.clone()).into());
        }
        let activity = turn.get::<WorkerActivities>(&key)?.ok_or_else(unknown)?;
        let mut activity = Arc::unwrap_or_clone(activity);
        activity.become_status(activity.status.after_heartbeat());
        activity.last_heartbeat_at_ms = turn.now_ms();
        activity.load = self.load;
        watch(turn, &mut activity);
        let is_draining = activity.status.is_draining();
        save(turn, &key, activity)?;
        Ok(HeartbeatRecorded { is_draining })
    }
}
