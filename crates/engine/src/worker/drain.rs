//! Draining and removing a worker (A20, A21).

use super::activity::save;
use super::register::remove;
use crate::effect::Effect;
use crate::ids::{Namespace, WorkerId};
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::tables::{WorkerActivities, WorkerActivityRecord, Workers};
use crate::task;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Tells a worker to finish its tasks and take no more. Sticky until it registers again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainWorker {
    /// The worker.
    pub worker_id: WorkerId,
}

/// Removes a worker. Removing one that is not there is no error; tasks that it still holds are
/// ready again, the same attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeregisterWorker {
    /// The worker.
    pub worker_id: WorkerId,
    /// Its process; `None` removes whichever is registered. A newer one is left alone.
    pub incarnation: Option<u64>,
}

impl DrainWorker {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
        let key = (namespace.clone(), self.worker_id.clone());
        let activity = turn
            .get::<WorkerActivities>(&key)?
            .ok_or_else(|| Rejection::WorkerNotFound(self.worker_id.clone()))?;
        if !activity.is_draining {
            let draining = WorkerActivityRecord {
                is_draining: true,
                ..Arc::unwrap_or_clone(activity)
            };
            save(turn, &key, draining)?;
        }
        turn.effect(Effect::DrainWorker {
            namespace: namespace.clone(),
            worker: self.worker_id.clone(),
        });
        Ok(Reply::Done)
    }
}

impl DeregisterWorker {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
        let key = (namespace.clone(), self.worker_id.clone());
        let Some(worker) = turn.get::<Workers>(&key)? else {
            return Ok(Reply::Done);
        };
        if self
            .incarnation
            .is_some_and(|incarnation| incarnation != worker.incarnation)
        {
            return Err(Rejection::WorkerReplaced(self.worker_id.clone()).into());
        }
        for lease in remove(turn, &key)? {
            task::release(turn, lease)?;
        }
        Ok(Reply::Done)
    }
}
