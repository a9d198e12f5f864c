//! The output of `flo cluster status -o json`.

use serde::Deserialize;

/// The cluster, as one node sees it.
#[derive(Clone, Debug, Deserialize)]
pub struct ClusterStatus {
    /// The cluster's id.
    pub cluster_id: String,
    /// The leader.
    pub leader_id: Option<u64>,
    /// The term.
    pub term: u64,
    /// The members, by id.
    pub nodes: Vec<NodeStatus>,
}

/// A member.
#[derive(Clone, Debug, Deserialize)]
pub struct NodeStatus {
    /// Its id.
    pub node_id: u64,
    /// Its client endpoint.
    pub address: String,
    /// `leader`, `follower`, `candidate` or `learner`.
    pub role: String,
    /// Whether it is a voter.
    pub voter: bool,
    /// The last index of its log.
    pub last_log_index: u64,
    /// The last index that it has applied.
    pub applied_index: u64,
    /// The index of its last snapshot.
    pub snapshot_index: Option<u64>,
    /// The digest of its state.
    pub digest: Option<Digest>,
    /// How many entries it is behind the leader.
    pub lag: u64,
    /// Whether it answers and keeps up.
    pub healthy: bool,
    /// The version of its binary.
    pub version: String,
}

/// A digest of the state at one index.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Digest {
    /// The index.
    pub index: u64,
    /// The digest, in hexadecimal.
    pub value: String,
}

impl ClusterStatus {
    /// The status of a node.
    ///
    /// # Panics
    /// When the node is not a member.
    #[must_use]
    pub fn node(&self, node_id: u64) -> &NodeStatus {
        let node = self.nodes.iter().find(|node| node.node_id == node_id);
        node.unwrap_or_else(|| panic!("expected node {node_id} to be a member, but: {self:?}"))
    }
}
