//! What this node's consensus knows about the cluster: its members, and, at the leader, how far they have followed.

use crate::cluster::leadership::{Follower, lag};
use crate::membership::{StoredMembership, voters};
use crate::network::local::Local;
use crate::raft::type_config::{ConsensusHandle, LogId};
use crate::tuning::Tuning;
use flotilla_engine::NodeId;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::{Instant, ServerState};
use std::sync::Arc;
use std::time::Duration;

/// What this node's consensus knows about the cluster. Only reads it; clones share it.
#[derive(Clone)]
pub(crate) struct ConsensusView {
    raft: ConsensusHandle,
    local: Arc<Local>,
    election_max: Duration,
}

impl ConsensusView {
    pub(crate) fn new(raft: &ConsensusHandle, local: &Arc<Local>, tuning: &Tuning) -> Self {
        Self {
            raft: raft.clone(),
            local: Arc::clone(local),
            election_max: tuning.election_max,
        }
    }

    /// The members as this node knows them, even if not committed yet.
    pub(crate) fn membership(&self) -> Arc<StoredMembership> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        Arc::clone(&metrics.membership_config)
    }

    /// Whether this node belongs to a cluster, according to its own log.
    pub(crate) fn is_member(&self) -> bool {
        self.membership().get_node(&self.local.node_id).is_some()
    }

    /// Whether a leader has contacted this node, even if the node does not belong to a cluster yet.
    pub(crate) fn has_known_leader(&self) -> bool {
        let metrics = self.raft.server_metrics();
        metrics.borrow_watched().current_leader.is_some()
    }

    /// Returns once this node belongs to a cluster.
    pub(crate) async fn await_membership(&self) {
        let mut metrics = self.raft.server_metrics();
        while !self.is_member() && metrics.changed().await.is_ok() {}
    }

    /// Whether this node leads and a quorum has recently responded to it.
    pub(crate) fn is_leading(&self) -> bool {
        self.has_led_within(self.election_max * 2)
    }

    /// Whether this node leads and a quorum has responded to it within the last `time`.
    pub(crate) fn has_led_within(&self, time: Duration) -> bool {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        if metrics.state != ServerState::Leader {
            return false;
        }
        let is_alone = voters(metrics.membership_config.membership()).len() == 1;
        is_alone
            || metrics
                .last_quorum_acked
                .is_some_and(|acked| acked.elapsed() < time)
    }

    /// How many entries a member is behind this leader; `None` if this node does not lead.
    pub(crate) fn lag_of(&self, node_id: NodeId) -> Option<u64> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let matched = metrics.replication.as_ref()?.get(&node_id.0);
        let last = metrics.last_log_index.unwrap_or(0);
        Some(lag(matched.copied().flatten(), last))
    }

    /// The other voters that may lead and have recently answered a heartbeat; empty on a node that does
    /// not lead.
    pub(crate) fn followers(&self) -> Vec<Follower> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let voters = metrics.membership_config.membership().get_joint_config();
        let (Some(voters), Some(heard), Some(replication)) = (
            voters.last(),
            metrics.heartbeat.as_ref(),
            metrics.replication.as_ref(),
        ) else {
            return Vec::new();
        };
        let is_reachable = |node_id: &u64| {
            let at = heard.get(node_id).and_then(Option::as_ref);
            at.is_some_and(|at| at.elapsed() < self.election_max)
        };
        let last = metrics.last_log_index.unwrap_or(0);
        let follower = |(node_id, matched): (&u64, &Option<LogId>)| Follower {
            node_id: *node_id,
            matched: *matched,
            lag: lag(*matched, last),
        };
        let others = replication.iter();
        others
            .filter(|(node_id, _)| **node_id != self.local.node_id && voters.contains(node_id))
            .filter(|(node_id, _)| is_reachable(node_id) && !self.local.is_drained(**node_id))
            .map(follower)
            .collect()
    }
}
