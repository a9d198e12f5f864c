//! Leader contact: when a leader last confirmed, with a quorum, what is committed.
//!
//! A follower that receives heartbeats knows nothing about the quorum behind them, and one that
//! receives none gets no notice of that. So each node requests a read index from time to time, as
//! its readers do, and records the response.

use crate::core::Core;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// When a leader last confirmed to this node what is committed.
#[derive(Debug, Default)]
pub(crate) struct LeaderContact {
    // A std mutex and not tokio's because it is never held across an await.
    confirmed: Mutex<Option<Instant>>,
}

impl LeaderContact {
    /// A leader has confirmed it now.
    pub(crate) fn confirm(&self) {
        *self.lock() = Some(Instant::now());
    }

    fn is_within(&self, time: Duration) -> bool {
        self.lock().is_some_and(|at| at.elapsed() < time)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        // Every change is one assignment, so a panic elsewhere leaves no partial change.
        self.confirmed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Whether a leader with a quorum has recently confirmed what is committed, to this node or to
    /// itself. A change of leaders within [`Tuning::leader_timeout`](crate::Tuning) does not
    /// interrupt it.
    pub(crate) fn has_leader_contact(&self) -> bool {
        self.leader_contact.is_within(self.tuning.leader_timeout())
    }
}

/// Keeps the leader contact up to date while there are no reads, and logs when the cluster stops or
/// starts to serve this node.
///
/// openraft logs each unanswered heartbeat, several times a second; its log is for debugging.
pub(crate) async fn watch_leader_contact(core: Arc<Core>) {
    let pause = core.tuning.election_max * 2;
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut leadership = core.leadership.subscribe();
    let mut had_leader_contact = false;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            changed = leadership.changed() => match changed {
                // Its voters are a quorum, and have just responded.
                Ok(()) if leadership.borrow_and_update().is_self => core.leader_contact.confirm(),
                Ok(()) => {}
                Err(_) => return,
            },
        }
        if core.is_member() && !core.leader_contact.is_within(pause) {
            // The leader contact shows whether it is confirmed.
            drop(core.barrier.index(false).await);
        }
        let has_leader_contact = core.has_leader_contact();
        match (had_leader_contact, has_leader_contact) {
            (false, true) => tracing::info!("the cluster has a leader"),
            (true, false) => tracing::warn!(
                "no leader with a quorum has responded to this node recently: it can neither read \
                 nor write"
            ),
            (true, true) | (false, false) => {}
        }
        had_leader_contact = has_leader_contact;
    }
}
