//! Keeps the leader contact up to date while there are no reads.

use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::leader_contact::{LeaderContact, Standstill};
use crate::cluster::leadership::Leadership;
use crate::read::ReadBarrier;
use crate::state::rows::AppliedPosition;
use crate::tuning::Tuning;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// What the watch works with.
pub(crate) struct ContactWatch {
    pub(crate) leader_contact: Arc<LeaderContact>,
    pub(crate) barrier: ReadBarrier,
    pub(crate) consensus: ConsensusView,
    pub(crate) applied_position: watch::Receiver<AppliedPosition>,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) tuning: Tuning,
}

impl ContactWatch {
    /// Keeps the leader contact up to date while there are no reads, and logs when the cluster stops or
    /// starts to serve this node.
    ///
    /// openraft logs each unanswered heartbeat, several times a second; its log is for debugging.
    pub(crate) async fn run(mut self) {
        let pause = self.tuning.election_max * 2;
        let mut ticks = interval(pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let contact = self.leader_contact;
        let mut known = Some(Standstill::NoLeader);
        let mut progress = ApplyProgress::begin();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                changed = self.leadership.changed() => match changed {
                    // Its voters are a quorum, and have just responded.
                    Ok(()) if self.leadership.borrow_and_update().is_self => contact.confirm(0),
                    Ok(()) => {}
                    Err(_) => return,
                },
            }
            if self.consensus.is_member() && !contact.is_within(pause) {
                // The leader contact shows whether it is confirmed.
                drop(self.barrier.index(false).await);
            }
            let applied = self.applied_position.borrow().index();
            let timeout = self.tuning.leader_timeout();
            let has_stopped = progress.has_stopped(applied, contact.index(), timeout);
            let found = match contact.is_recent() {
                false => Some(Standstill::NoLeader),
                true => has_stopped.then_some(Standstill::NothingApplied),
            };
            contact.set_standstill(found);
            log_change(known, found);
            known = found;
        }
    }
}

/// Since when this node has applied nothing although there is something to apply.
struct ApplyProgress {
    applied: Option<u64>,
    since: Instant,
}

impl ApplyProgress {
    /// Nothing is applied yet.
    fn begin() -> Self {
        Self {
            applied: None,
            since: Instant::now(),
        }
    }

    /// Whether it has applied nothing for `time`.
    fn has_stopped(&mut self, applied: Option<u64>, confirmed: u64, time: Duration) -> bool {
        if applied != self.applied || applied.unwrap_or(0) >= confirmed {
            *self = Self {
                applied,
                since: Instant::now(),
            };
        }
        self.since.elapsed() >= time
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
    async fn a_new_node_has_not_stopped_when_the_first_entries_are_committed() {
        let mut progress = ApplyProgress::begin();
        tokio::time::advance(TIMEOUT).await;
        assert!(!progress.has_stopped(None, 0, TIMEOUT), "no cluster yet");
        assert!(!progress.has_stopped(None, 3, TIMEOUT), "just formed");
        tokio::time::advance(TIMEOUT).await;
        assert!(progress.has_stopped(None, 3, TIMEOUT));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_has_stopped_only_if_it_applies_nothing_of_what_is_committed() {
        let mut progress = ApplyProgress::begin();
        tokio::time::advance(TIMEOUT).await;
        assert!(!progress.has_stopped(Some(7), 7, TIMEOUT), "it is idle");
        tokio::time::advance(TIMEOUT).await;
        assert!(!progress.has_stopped(Some(7), 7, TIMEOUT), "still idle");
        assert!(!progress.has_stopped(Some(7), 9, TIMEOUT), "just behind");
        tokio::time::advance(TIMEOUT).await;
        assert!(progress.has_stopped(Some(7), 9, TIMEOUT));
        assert!(!progress.has_stopped(Some(8), 9, TIMEOUT), "slow");
    }
}
