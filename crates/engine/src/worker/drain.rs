//! Draining and deregistering a worker (A20, A21).

use super::activity::save;
use super::gone::free_leases;
use super::register::remove;
use crate::access::{Permission, judge_turn};
use crate::command_scope::CommandScope;
use crate::effect::Effect;
use crate::ids::{Namespace, WorkerId};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{HeldTasks, WorkerActivities, WorkerOwner, WorkerRecord, Workers};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Begins a drain: the worker finishes its tasks and gets no new ones. Requested by an operator or by the worker
/// itself. Lasts until it registers again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainWorker {
    /// The worker.
    pub worker_id: WorkerId,
    /// Its process; `None` drains whichever is registered. A newer one is left alone.
    pub incarnation: Option<u64>,
}

/// Removes a worker. Removing a missing worker succeeds; tasks that it still holds become ready again, with the same
/// attempt number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeregisterWorker {
    /// The worker.
    pub worker_id: WorkerId,
    /// Its process; `None` removes whichever is registered. A newer one is left alone.
    pub incarnation: Option<u64>,
}

impl DrainWorker {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let key = (namespace.clone(), self.worker_id.clone());
        let unknown = || Rejection::WorkerNotFound(self.worker_id.clone());
        let worker = turn.get::<Workers>(&key)?.ok_or_else(unknown)?;
        check_incarnation(&worker, self.incarnation, &self.worker_id)?;
        check_control(turn, &worker.owner, namespace)?;
        let activity = turn.get::<WorkerActivities>(&key)?.ok_or_else(unknown)?;
        if !activity.status.is_draining() {
            let mut activity = Arc::unwrap_or_clone(activity);
            activity.become_status(activity.status.after_drain());
            save(turn, &key, activity)?;
        }
        turn.effect(Effect::DrainWorker {
            namespace: namespace.clone(),
            worker: self.worker_id.clone(),
        });
        Ok(Done {})
    }
}

impl DeregisterWorker {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let key = (namespace.clone(), self.worker_id.clone());
        let Some(worker) = turn.get::<Workers>(&key)? else {
            return Ok(Done {});
        };
        check_incarnation(&worker, self.incarnation, &self.worker_id)?;
        check_control(turn, &worker.owner, namespace)?;
        let removed = remove(turn, &key)?;
        if let Some(former) = removed.former {
            free_leases(turn, former, key, HeldTasks::Returned)?;
        }
        Ok(Done {})
    }
}

/// Refuses what was meant for another process of the worker.
fn check_incarnation(
    worker: &WorkerRecord,
    meant: Option<u64>,
    worker_id: &WorkerId,
) -> Result<(), Rejection> {
    if meant.is_some_and(|incarnation| incarnation != worker.incarnation) {
        return Err(Rejection::WorkerReplaced(worker_id.clone()));
    }
    Ok(())
}

/// Checks that the turn's actor may drain or deregister a worker of this owner.
fn check_control(
    turn: &mut Turn<'_, '_>,
    owner: &WorkerOwner,
    namespace: &Namespace,
) -> TurnResult<()> {
    if *owner == WorkerOwner::Anyone || WorkerOwner::of_actor(turn)? == *owner {
        return Ok(());
    }
    let scope = CommandScope::Namespace(namespace.clone());
    judge_turn(turn, &[Permission::WorkerControl], &scope)
}
