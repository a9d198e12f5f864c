//! Silence and death of workers (A4, A20).

use crate::ids::{Namespace, WorkerId, WorkerNumber};
use crate::limits::WORKER_SILENCE_MS_MAX;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::tables::{
    TimerKey, TimerKind, WorkerActivities, WorkerActivityRecord, WorkerNumbers, WorkerState,
    Workers,
};
use crate::task;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Says that a worker's process is known to be gone: its leases are freed at once, the same
/// attempts. For embedded workers of a node that died (A4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseWorker {
    /// The worker.
    pub worker_id: WorkerId,
    /// The process that is gone; a newer one is left alone.
    pub incarnation: u64,
}

impl ReleaseWorker {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
        let key = (namespace.clone(), self.worker_id.clone());
        let unknown = || Rejection::WorkerNotFound(self.worker_id.clone());
        let worker = turn.get::<Workers>(&key)?.ok_or_else(unknown)?;
        if worker.incarnation != self.incarnation {
            return Err(Rejection::WorkerReplaced(self.worker_id.clone()).into());
        }
        let activity = turn.get::<WorkerActivities>(&key)?.ok_or_else(unknown)?;
        let leases = activity.leases.clone();
        let gone = WorkerActivityRecord {
            state: WorkerState::Unhealthy,
            load: 0,
            ..Arc::unwrap_or_clone(activity)
        };
        turn.put::<WorkerActivities>(&key, gone);
        for lease in leases {
            task::release(turn, lease)?;
        }
        Ok(Reply::Done)
    }
}

/// The timer that finds a worker silent when nothing is heard from now on.
pub(super) fn silence_timer(worker: WorkerNumber, heard_at_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::WorkerSilence,
        due_ms: heard_at_ms.saturating_add(WORKER_SILENCE_MS_MAX),
        subject: worker.0,
        detail: 0,
    }
}

/// The silence timer fires. It is not moved with each heartbeat, which would cost two writes; it
/// looks when the worker was last heard, and sets itself again.
pub(crate) fn fall_silent(turn: &mut Turn<'_, '_>, worker: WorkerNumber) -> Outcome<()> {
    let Some(key) = turn.get::<WorkerNumbers>(&worker)? else {
        return Ok(());
    };
    let Some(activity) = turn.get::<WorkerActivities>(&key)? else {
        return Ok(());
    };
    if activity.state == WorkerState::Unhealthy {
        return Ok(());
    }
    let timer = silence_timer(worker, activity.heard_at_ms);
    if timer.due_ms > turn.now_ms() {
        turn.set_timer(timer);
        return Ok(());
    }
    let silent = WorkerActivityRecord {
        state: WorkerState::Unhealthy,
        ..Arc::unwrap_or_clone(activity)
    };
    turn.put::<WorkerActivities>(&key, silent);
    Ok(())
}
