//! The cluster's status, as far as this node can learn it.

use crate::cluster::candidacy::Candidacy;
use crate::cluster::consensus_view::ConsensusView;
use crate::lifecycle::Lifecycle;
use crate::membership::{StoredMembership, cluster_id, voters};
use crate::network::convert;
use crate::network::links::Links;
use crate::network::local::Local;
use crate::network::protocol::{StatusRequest, StatusResponse};
use crate::raft::type_config::ConsensusHandle;
use crate::snapshot_maker::SnapshotMaker;
use crate::state::applier::AppliedState;
use flotilla_engine::{ENGINE_VERSION_FIRST, NodeId};
use futures::future::join_all;
use openraft::ServerState;
use openraft::async_runtime::watch::WatchReceiver;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A member that does not respond within this time is not healthy.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(700);

/// The cluster's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The cluster's id, once it is formed.
    pub cluster_id: Option<String>,
    /// The member that leads with a quorum.
    pub leader: Option<NodeId>,
    /// The newest term that a member knows.
    pub term: u64,
    /// The engine version on which the cluster has agreed, as far as this node has applied.
    pub engine_version: u32,
    /// All members, by id.
    pub nodes: Vec<NodeStatus>,
}

impl Status {
    /// What a member waits for while no leader serves it.
    #[must_use]
    pub fn awaited(&self) -> String {
        if let Some(leader) = self.leader {
            return format!(
                "node {} leads, but this node has not yet applied what is committed",
                leader.0
            );
        }
        let voters = self.nodes.iter().filter(|node| node.is_voter);
        let voters_count = voters.clone().count();
        let silent: Vec<String> = voters
            .filter(|node| !node.responds())
            .map(|node| format!("node {} at {}", node.node_id.0, node.peer_address))
            .collect();
        let (responding, quorum) = (voters_count - silent.len(), voters_count / 2 + 1);
        match responding >= quorum {
            true => "enough voters respond; waiting for them to elect a leader".to_owned(),
            false => format!(
                "{responding} of {voters_count} voters respond, but {quorum} are needed to elect a leader; no response \
                 from {}",
                silent.join(", ")
            ),
        }
    }
}

/// The status of one member; numbers are 0 and texts empty if it does not respond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The member's id.
    pub node_id: NodeId,
    /// Its address for clients.
    pub address: String,
    /// Its address for peers.
    pub peer_address: String,
    /// Its Raft role.
    pub role: Role,
    /// Whether it votes.
    pub is_voter: bool,
    /// The last entry of its log.
    pub last_log_index: u64,
    /// The last entry that it applied.
    pub applied_index: u64,
    /// The last entry that its snapshot covers.
    pub snapshot_index: u64,
    /// The digest of its state after the last applied entry.
    pub digest: Option<DigestStatus>,
    /// How many entries it is behind.
    pub lag: u64,
    /// Whether it responds and its state has not diverged.
    pub is_healthy: bool,
    /// Whether it is drained.
    pub is_drained: bool,
    /// The version of its binary.
    pub version: String,
    /// The newest engine version that its binary knows; 0 if it does not respond.
    pub engine_version: u32,
    /// Its minimum election timeout in milliseconds; 0 if it does not respond.
    pub election_ms: u64,
}

impl NodeStatus {
    /// Whether the member responds.
    fn responds(&self) -> bool {
        !self.version.is_empty()
    }
}

/// A digest and the entry after which it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DigestStatus {
    /// The index of the entry.
    pub index: u64,
    /// The digest after that entry.
    pub value: u128,
}

/// A member's Raft role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Proposes the entries.
    Leader,
    /// Votes, and receives the log.
    Follower,
    /// Stands for election.
    Candidate,
    /// Receives the log without a vote.
    Learner,
    /// Does not respond, or is not yet part of the cluster.
    Unknown,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Leader => "leader",
            Self::Follower => "follower",
            Self::Candidate => "candidate",
            Self::Learner => "learner",
            Self::Unknown => "unknown",
        }
    }

    fn named(name: &str) -> Self {
        [Self::Leader, Self::Follower, Self::Candidate, Self::Learner]
            .into_iter()
            .find(|role| role.name() == name)
            .unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Collects the status of members. Clones share what it depends on.
#[derive(Clone)]
pub(crate) struct StatusReports {
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
    pub(crate) raft: ConsensusHandle,
    pub(crate) consensus: ConsensusView,
    pub(crate) applied_state: AppliedState,
    pub(crate) snapshot_maker: SnapshotMaker,
    pub(crate) candidacy: Arc<Candidacy>,
    pub(crate) lifecycle: Lifecycle,
}

impl StatusReports {
    /// Asks every member, and returns what is known without those that do not respond.
    pub(crate) async fn collect(&self) -> Status {
        let membership = self.consensus.membership();
        let pending = membership.nodes().map(|(node_id, member)| async {
            let answer = self.ask(*node_id, &member.peer_address).await;
            (*node_id, answer)
        });
        let responses = join_all(pending).await;
        let known = || responses.iter().filter_map(|(_, answer)| answer.as_ref());
        let last_log_index = known()
            .map(|answer| answer.last_log_index)
            .max()
            .unwrap_or(0);
        Status {
            cluster_id: cluster_id(membership.membership()),
            leader: known()
                .filter(|answer| answer.leading)
                .max_by_key(|answer| answer.term)
                .map(|answer| NodeId(answer.node_id)),
            term: known().map(|answer| answer.term).max().unwrap_or(0),
            engine_version: *self.applied_state.engine_version.borrow(),
            nodes: responses
                .iter()
                .filter_map(|(node_id, answer)| {
                    node_status(&membership, *node_id, answer.as_ref(), last_log_index)
                })
                .collect(),
        }
    }

    /// Asks a member for its status; `None` if it does not respond in time.
    pub(crate) async fn ask(&self, node_id: u64, peer_address: &str) -> Option<StatusResponse> {
        if node_id == self.local.node_id {
            return Some(self.own());
        }
        let peer = self.links.calls(peer_address);
        let request = StatusRequest {
            sender: Some(self.local.sender(node_id)),
        };
        tokio::time::timeout(ANSWER_TIMEOUT, peer.status(request))
            .await
            .ok()?
            .ok()
    }

    /// The status of this node.
    pub(crate) fn own(&self) -> StatusResponse {
        let applied_position = *self.applied_state.applied_position.borrow();
        let is_leading = self.consensus.is_leading();
        let snapshot_index = self.snapshot_maker.index().unwrap_or(0);
        let drained = self.candidacy.is_drained();
        let metrics = self.raft.metrics();
        // Borrowed last and only once. While consensus waits to write its metrics, a holder that
        // borrows them again waits for consensus, and consensus waits for the holder: a deadlock.
        let metrics = metrics.borrow_watched();
        StatusResponse {
            node_id: self.local.node_id,
            client_address: self.local.client_address.clone(),
            role: role_of(metrics.state).name().to_owned(),
            term: metrics.current_term,
            leading: is_leading,
            last_log_index: metrics.last_log_index.unwrap_or(0),
            applied_index: applied_position.index().unwrap_or(0),
            snapshot_index,
            digest: convert::digest_out(applied_position.digest),
            diverged: self.lifecycle.is_diverged(),
            version: self.local.version.clone(),
            engine_version: self.local.engine_version,
            drained,
            election_ms: self.local.election_ms,
        }
    }

    /// Whether another member says that it is drained.
    pub(crate) async fn is_drained(&self, node_id: u64, stored: &StoredMembership) -> bool {
        let Some(member) = stored.get_node(&node_id) else {
            return false;
        };
        let found = self.ask(node_id, &member.peer_address).await;
        found.is_some_and(|found| found.drained)
    }
}

fn node_status(
    membership: &StoredMembership,
    node_id: u64,
    answer: Option<&StatusResponse>,
    last_log_index: u64,
) -> Option<NodeStatus> {
    let member = membership.get_node(&node_id)?;
    let base = NodeStatus {
        node_id: NodeId(node_id),
        address: member.client_address.clone(),
        peer_address: member.peer_address.clone(),
        role: Role::Unknown,
        is_voter: voters(membership.membership()).contains(&node_id),
        last_log_index: 0,
        applied_index: 0,
        snapshot_index: 0,
        digest: None,
        lag: last_log_index,
        is_healthy: false,
        is_drained: false,
        version: String::new(),
        engine_version: 0,
        election_ms: 0,
    };
    let Some(answer) = answer else {
        return Some(base);
    };
    let digest = convert::digest_in(&answer.digest).ok();
    Some(NodeStatus {
        address: answer.client_address.clone(),
        role: Role::named(&answer.role),
        last_log_index: answer.last_log_index,
        applied_index: answer.applied_index,
        snapshot_index: answer.snapshot_index,
        digest: digest.map(|value| DigestStatus {
            index: answer.applied_index,
            value,
        }),
        lag: last_log_index.saturating_sub(answer.applied_index),
        is_healthy: !answer.diverged,
        is_drained: answer.drained,
        version: answer.version.clone(),
        // A release from before there was a second version reports none.
        engine_version: answer.engine_version.max(ENGINE_VERSION_FIRST),
        election_ms: answer.election_ms,
        ..base
    })
}

fn role_of(state: ServerState) -> Role {
    match state {
        ServerState::Leader => Role::Leader,
        ServerState::Follower => Role::Follower,
        ServerState::Candidate => Role::Candidate,
        ServerState::Learner => Role::Learner,
        ServerState::Shutdown => Role::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(node_id: u64, version: &str) -> NodeStatus {
        NodeStatus {
            node_id: NodeId(node_id),
            address: String::new(),
            peer_address: format!("10.0.0.{node_id}:9001"),
            role: Role::Unknown,
            is_voter: node_id < 4,
            last_log_index: 0,
            applied_index: 0,
            snapshot_index: 0,
            digest: None,
            lag: 0,
            is_healthy: true,
            is_drained: false,
            version: version.to_owned(),
            engine_version: 1,
            election_ms: 300,
        }
    }

    fn awaited(leader: Option<u64>, nodes: Vec<NodeStatus>) -> String {
        let status = Status {
            cluster_id: None,
            leader: leader.map(NodeId),
            term: 0,
            engine_version: 1,
            nodes,
        };
        status.awaited()
    }

    #[test]
    fn a_member_without_a_leader_waits_for_the_voters_that_do_not_respond() {
        let nodes = vec![node(1, "0.1.0"), node(2, ""), node(3, ""), node(4, "")];
        assert_eq!(
            awaited(None, nodes),
            "1 of 3 voters respond, but 2 are needed to elect a leader; no response from node 2 at 10.0.0.2:9001, \
             node 3 at 10.0.0.3:9001"
        );
    }

    #[test]
    fn a_member_with_a_quorum_waits_for_an_election_or_until_it_has_caught_up() {
        let nodes = || vec![node(1, "0.1.0"), node(2, "0.1.0"), node(3, "")];
        assert_eq!(
            awaited(None, nodes()),
            "enough voters respond; waiting for them to elect a leader"
        );
        assert_eq!(
            awaited(Some(2), nodes()),
            "node 2 leads, but this node has not yet applied what is committed"
        );
    }
}
