//! Worker health: missing heartbeats and dead processes (A4, A20).

use super::activity::save;
use super::gone::{self, detach_leases, free_leases};
use super::leases;
use crate::ids::{Namespace, WorkerId, WorkerNumber};
use crate::limits::WORKER_SILENCE_MS_MAX;
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::tables::{
    HeldTasks, TimerKey, TimerKind, WorkerActivities, WorkerActivityRecord, WorkerNumbers, Workers,
};
use crate::timer;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Reports that an embedded worker's process is gone: its leases are freed immediately (A4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseWorker {
    /// The worker.
    pub worker_id: WorkerId,
    /// The process that is gone; a newer one is left alone.
    pub incarnation: u64,
    /// How it went.
    pub departure: Departure,
}

/// How the process of an embedded worker went (A4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Departure {
    /// Its node stops, and says so itself: the tasks are handed out again as the same attempts.
    Stopped,
    /// The leader no longer hears its node: the attempts that it held have failed.
    Lost {
        /// The last heartbeat that the caller read, in milliseconds: a worker with a later one is back.
        last_heartbeat_at_ms: u64,
    },
}

impl Departure {
    fn held(self) -> HeldTasks {
        match self {
            Self::Stopped => HeldTasks::Returned,
            Self::Lost { .. } => HeldTasks::Lost,
        }
    }

    /// Whether a worker is back whose last heartbeat was at `heard_ms`.
    fn is_over(self, heard_ms: u64) -> bool {
        match self {
            Self::Stopped => false,
            Self::Lost {
                last_heartbeat_at_ms,
            } => last_heartbeat_at_ms != heard_ms,
        }
    }
}

impl ReleaseWorker {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> TurnResult<Done> {
        let key = (namespace.clone(), self.worker_id.clone());
        let unknown = || Rejection::WorkerNotFound(self.worker_id.clone());
        let worker = turn.get::<Workers>(&key)?.ok_or_else(unknown)?;
        if worker.incarnation != self.incarnation {
            return Err(Rejection::WorkerReplaced(self.worker_id.clone()).into());
        }
        let activity = turn.get::<WorkerActivities>(&key)?.ok_or_else(unknown)?;
        if self.departure.is_over(activity.last_heartbeat_at_ms) {
            return Err(Rejection::WorkerHealthy(self.worker_id.clone()).into());
        }
        let mut activity = Arc::unwrap_or_clone(activity);
        let former = detach_leases(turn, &key, &mut activity)?;
        unwatch(turn, &mut activity);
        activity.become_status(activity.status.after_silence());
        activity.load = 0;
        save(turn, &key, activity)?;
        if let Some(former) = former {
            free_leases(turn, former, key, self.departure.held())?;
        }
        Ok(Done {})
    }
}

/// Sets the heartbeat timer, counted from the last heartbeat, unless it is already set.
pub(super) fn watch(turn: &mut Turn<'_, '_>, activity: &mut WorkerActivityRecord) {
    if activity.silence_due_ms.is_none() {
        let due_ms = activity
            .last_heartbeat_at_ms
            .saturating_add(WORKER_SILENCE_MS_MAX);
        activity.silence_due_ms = Some(due_ms);
        turn.set_timer(silence_timer(activity.number, due_ms));
    }
}

/// Watches no longer.
pub(super) fn unwatch(turn: &mut Turn<'_, '_>, activity: &mut WorkerActivityRecord) {
    if let Some(due_ms) = activity.silence_due_ms.take() {
        turn.clear_timer(silence_timer(activity.number, due_ms));
    }
}

fn silence_timer(worker: WorkerNumber, due_ms: u64) -> TimerKey {
    TimerKey {
        kind: TimerKind::WorkerSilence,
        due_ms,
        subject: worker.0,
        detail: 0,
    }
}

/// Handles the heartbeat timer. Heartbeats do not move the timer, which would cost two writes each; when it fires, it
/// checks the last heartbeat and sets itself again.
pub(crate) fn mark_unhealthy(turn: &mut Turn<'_, '_>, worker: WorkerNumber) -> TurnResult<()> {
    let Some(key) = turn.get::<WorkerNumbers>(&worker)? else {
        return Ok(());
    };
    let Some(activity) = turn.get::<WorkerActivities>(&key)? else {
        return Ok(());
    };
    let mut activity = Arc::unwrap_or_clone(activity);
    activity.silence_due_ms = None;
    let silent_ms = turn.now_ms().saturating_sub(activity.last_heartbeat_at_ms);
    if silent_ms < WORKER_SILENCE_MS_MAX {
        watch(turn, &mut activity);
    } else {
        activity.become_status(activity.status.after_silence());
    }
    save(turn, &key, activity)?;
    Ok(())
}

/// Restores the worker's timers after quarantine (design rule 10).
pub(crate) fn release_from_quarantine(
    turn: &mut Turn<'_, '_>,
    worker: WorkerNumber,
) -> TurnResult<()> {
    let Some(key) = turn.get::<WorkerNumbers>(&worker)? else {
        return gone::release_from_quarantine(turn, worker);
    };
    let Some(activity) = turn.get::<WorkerActivities>(&key)? else {
        return Ok(());
    };
    let mut activity = Arc::unwrap_or_clone(activity);
    if let Some(due_ms) = activity.silence_due_ms {
        activity.silence_due_ms = Some(timer::restore(turn, silence_timer(worker, due_ms))?);
    }
    leases::restore(turn, &mut activity)?;
    save(turn, &key, activity)?;
    Ok(())
}
