//! Leader contact: when a leader last confirmed, with a quorum, what is committed, and whether this
//! node applies it.
//!
//! A follower that receives heartbeats knows nothing about the quorum behind them, and one that
//! receives none gets no notice of that. So each node requests a read index from time to time, as
//! its readers do, and records the response.

use crate::core::Core;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Why this node learns nothing of what the cluster commits: callers that wait here for a change must
/// wait at another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standstill {
    /// No leader with a quorum has recently responded to this node.
    NoLeader,
    /// A leader has confirmed more than this node has applied, and the node applies nothing.
    NothingApplied,
}

/// When a leader last confirmed to this node what is committed.
#[derive(Debug)]
pub(crate) struct LeaderContact {
    // A std mutex and not tokio's because it is never held across an await.
    confirmed: Mutex<Confirmed>,
    standstill: watch::Sender<Option<Standstill>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Confirmed {
    at: Option<Instant>,
    /// The highest index that was confirmed.
    index: u64,
}

impl Default for LeaderContact {
    fn default() -> Self {
        Self {
            confirmed: Mutex::default(),
            standstill: watch::Sender::new(Some(Standstill::NoLeader)),
        }
    }
}

impl LeaderContact {
    /// A leader has now confirmed that the log is committed up to `index`.
    pub(crate) fn confirm(&self, index: u64) {
        {
            let mut confirmed = self.lock();
            confirmed.at = Some(Instant::now());
            confirmed.index = confirmed.index.max(index);
        }
        // A caller that has just read here may wait here.
        self.standstill.send_if_modified(|standstill| {
            let was_missing = *standstill == Some(Standstill::NoLeader);
            if was_missing {
                *standstill = None;
            }
            was_missing
        });
    }

    /// Why this node learns nothing, if it does not.
    pub(crate) fn standstill(&self) -> watch::Receiver<Option<Standstill>> {
        self.standstill.subscribe()
    }

    fn set_standstill(&self, found: Option<Standstill>) {
        self.standstill
            .send_if_modified(|standstill| std::mem::replace(standstill, found) != found);
    }

    fn is_within(&self, time: Duration) -> bool {
        self.lock().at.is_some_and(|at| at.elapsed() < time)
    }

    fn index(&self) -> u64 {
        self.lock().index
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Confirmed> {
        // No change panics halfway.
        self.confirmed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Since when this node has applied nothing although there is something to apply.
struct ApplyProgress {
    applied: Option<u64>,
    since: Instant,
}

impl ApplyProgress {
    /// Whether it has applied nothing for `time`.
    fn has_stopped(&mut self, applied: Option<u64>, confirmed: u64, time: Duration) -> bool {
        if applied != self.applied || applied >= Some(confirmed) {
            *self = Self {
                applied,
                since: Instant::now(),
            };
        }
        self.since.elapsed() >= time
    }
}

impl Core {
    /// Whether a leader with a quorum has recently confirmed what is committed, to this node or to
    /// itself. A change of leaders within [`Tuning::leader_timeout`](crate::Tuning) does not
    /// interrupt it.
    pub(crate) fn has_leader_contact(&self) -> bool {
        self.leader_contact.is_within(self.tuning.leader_timeout())
    }

    fn applied_index(&self) -> Option<u64> {
        self.applied_state.applied_position.borrow().index()
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
    let mut known = Some(Standstill::NoLeader);
    let mut progress = ApplyProgress {
        applied: None,
        since: Instant::now(),
    };
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            changed = leadership.changed() => match changed {
                // Its voters are a quorum, and have just responded.
                Ok(()) if leadership.borrow_and_update().is_self => core.leader_contact.confirm(0),
                Ok(()) => {}
                Err(_) => return,
            },
        }
        if core.consensus.is_member() && !core.leader_contact.is_within(pause) {
            // The leader contact shows whether it is confirmed.
            drop(core.barrier.index(false).await);
        }
        let (applied, confirmed) = (core.applied_index(), core.leader_contact.index());
        let has_stopped = progress.has_stopped(applied, confirmed, core.tuning.leader_timeout());
        let found = match core.has_leader_contact() {
            false => Some(Standstill::NoLeader),
            true => has_stopped.then_some(Standstill::NothingApplied),
        };
        core.leader_contact.set_standstill(found);
        log_change(known, found);
        known = found;
    }
}

fn log_change(known: Option<Standstill>, found: Option<Standstill>) {
    if known == found {
        return;
    }
    match found {
        None => tracing::info!("the cluster has a leader, and this node follows it"),
        Some(Standstill::NoLeader) => tracing::warn!(
            "no leader with a quorum has responded to this node recently: it can neither read nor \
             write"
        ),
        Some(Standstill::NothingApplied) => tracing::warn!(
            "this node applies nothing of what the leader has committed: it can answer no reads"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn a_node_has_stopped_only_if_it_applies_nothing_of_what_is_committed() {
        let mut progress = ApplyProgress {
            applied: None,
            since: Instant::now(),
        };
        tokio::time::advance(TIMEOUT).await;
        assert!(!progress.has_stopped(Some(7), 7, TIMEOUT), "it is idle");
        tokio::time::advance(TIMEOUT).await;
        assert!(!progress.has_stopped(Some(7), 7, TIMEOUT), "still idle");
        assert!(!progress.has_stopped(Some(7), 9, TIMEOUT), "just behind");
        tokio::time::advance(TIMEOUT).await;
        assert!(progress.has_stopped(Some(7), 9, TIMEOUT));
        assert!(!progress.has_stopped(Some(8), 9, TIMEOUT), "slow");
    }

    #[tokio::test]
    async fn whoever_has_just_read_may_wait() {
        let contact = LeaderContact::default();
        let standstill = contact.standstill();
        assert_eq!(*standstill.borrow(), Some(Standstill::NoLeader));
        contact.confirm(3);
        assert_eq!(*standstill.borrow(), None);
        contact.set_standstill(Some(Standstill::NothingApplied));
        contact.confirm(4);
        assert_eq!(*standstill.borrow(), Some(Standstill::NothingApplied));
        assert_eq!(contact.index(), 4);
    }
}
