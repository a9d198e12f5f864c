//! Converts the cluster's status to a message.

use flotilla_api::v1;
use flotilla_engine::NodeId;
use flotilla_replica::{DigestStatus, NodeStatus, Role, Status};

/// Converts the cluster's status as this node sees it.
pub(crate) fn message(status: Status, responding_node_id: NodeId) -> v1::ClusterStatus {
    v1::ClusterStatus {
        cluster_id: status.cluster_id.unwrap_or_default(),
        leader_id: status.leader.map(|leader| leader.0),
        term: status.term,
        nodes: status.nodes.into_iter().map(node).collect(),
        responding_node_id: responding_node_id.0,
        engine_version: status.engine_version,
        settings: None,
        awaited: String::new(),
        stop_reason: String::new(),
    }
}

fn node(status: NodeStatus) -> v1::NodeStatus {
    v1::NodeStatus {
        node_id: status.node_id.0,
        address: status.address,
        role: role(status.role).into(),
        voter: status.is_voter,
        last_log_index: status.last_log_index,
        applied_index: status.applied_index,
        snapshot_index: Some(status.snapshot_index).filter(|index| *index > 0),
        digest: status.digest.map(digest),
        lag: status.lag,
        healthy: status.is_healthy,
        version: status.version,
        engine_version: status.engine_version,
        drained: status.is_drained,
        election_ms: status.election_ms,
    }
}

fn digest(digest: DigestStatus) -> v1::StateDigest {
    v1::StateDigest {
        index: digest.index,
        value: format!("{:032x}", digest.value),
    }
}

fn role(role: Role) -> v1::NodeRole {
    match role {
        Role::Leader => v1::NodeRole::Leader,
        Role::Follower => v1::NodeRole::Follower,
        Role::Candidate => v1::NodeRole::Candidate,
        Role::Learner => v1::NodeRole::Learner,
        Role::Unknown => v1::NodeRole::Unspecified,
    }
}
