//! Measures the disk, and transfers leadership to a member with more free space.

use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::disk_pressure::DiskPressure;
use crate::cluster::leadership::{Follower, Leadership};
use crate::cluster::member_disk::MemberDisk;
use crate::cluster::transfer::Transfers;
use crate::network::local::Local;
use flotilla_engine::NodeId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// What the watch works with.
pub(crate) struct DiskWatch {
    pub(crate) disk: Arc<MemberDisk>,
    pub(crate) local: Arc<Local>,
    pub(crate) consensus: ConsensusView,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) transfers: Transfers,
    pub(crate) interval: Duration,
}

impl DiskWatch {
    /// Measures the disk until it is dropped.
    pub(crate) async fn run(self) {
        let mut ticks = interval(self.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.disk.measure();
            self.yield_leadership().await;
        }
    }

    /// If this node leads, transfers leadership to a voter with more free space, if there is one.
    async fn yield_leadership(&self) {
        let own = self.disk.pressure();
        if own == DiskPressure::Normal || !self.leadership.borrow().is_self {
            return;
        }
        let followers = self.consensus.followers().into_iter();
        let followers =
            followers.map(|follower| (self.local.disk_pressure_of(follower.node_id), follower));
        if let Some(to) = least_pressed(own, followers) {
            let deadline = Instant::now() + self.interval;
            tracing::info!(
                to,
                "another member has more free disk space: leadership is transferred to it"
            );
            drop(
                self.transfers
                    .transfer_leader(Some(NodeId(to)), deadline)
                    .await,
            );
        }
    }
}

/// The follower to lead instead of a node with this disk pressure: it has reported more space, and
/// has nearly all of the log.
fn least_pressed(
    own: DiskPressure,
    followers: impl Iterator<Item = (Option<DiskPressure>, Follower)>,
) -> Option<u64> {
    followers
        .filter_map(|(disk_pressure, follower)| Some((disk_pressure?, follower)))
        .filter(|(disk_pressure, follower)| *disk_pressure > own && follower.has_caught_up())
        .max_by_key(|(disk_pressure, follower)| (*disk_pressure, follower.matched))
        .map(|(_, follower)| follower.node_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::type_config::LogId;

    #[test]
    fn a_leader_yields_to_a_follower_that_has_said_that_it_has_room_and_has_the_log() {
        use DiskPressure::{Critical, Low, Normal};
        let follower = |node_id, lag| Follower {
            node_id,
            matched: Some(LogId::new_term_index(1, 1_000 - lag)),
            lag,
        };
        let chosen = |followers: Vec<(Option<DiskPressure>, Follower)>| {
            least_pressed(Low, followers.into_iter())
        };
        let near = (Some(Normal), follower(2, 1));
        let far = (Some(Normal), follower(3, 900));
        assert_eq!(chosen(vec![near, far]), Some(2));
        assert_eq!(chosen(vec![far]), None);
        assert_eq!(chosen(vec![(None, follower(2, 0))]), None);
        assert_eq!(chosen(vec![(Some(Low), follower(2, 0))]), None);
        let other = (Some(Normal), follower(4, 0));
        assert_eq!(chosen(vec![near, other, far]), Some(4));
        let little = (Some(Low), follower(5, 0));
        let from_full = least_pressed(Critical, [near, little].into_iter());
        assert_eq!(from_full, Some(2));
    }
}
