//! Why a replica does not start, and what to do about it.

use crate::log::store::LogOpenError;
use crate::raft::type_config::LogId;
use crate::state::rows::RowError;
use crate::storage::StorageError;
use flotilla_engine::NodeId;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a replica does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be created or locked.
    #[error("the data directory {} cannot be used: {error}", directory.display())]
    Directory {
        /// The data directory.
        directory: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// The data directory is in use by another process, or by another replica of this one.
    #[error("the data directory {} is in use", .0.display())]
    InUse(PathBuf),
    /// The log or state cannot be opened.
    #[error("the {part} in {} cannot be opened: {error}", directory.display())]
    Storage {
        /// `log` or `state`.
        part: &'static str,
        /// The data directory.
        directory: PathBuf,
        /// The error of the store.
        error: StorageError,
    },
    /// A record of the log was changed after it was written.
    #[error("the log in {} cannot be used: {error}", directory.display())]
    Log {
        /// The data directory.
        directory: PathBuf,
        /// The error in the log.
        error: LogOpenError,
    },
    /// A row of the state cannot be read.
    #[error("the state in {} cannot be used: {error}", directory.display())]
    State {
        /// The data directory.
        directory: PathBuf,
        /// The error in the state.
        error: RowError,
    },
    /// The data directory was created by another node.
    #[error("the data directory belongs to node {found}, but this is node {expected}",
        found = found.0, expected = expected.0)]
    OtherNode {
        /// This node's id.
        expected: NodeId,
        /// The directory's node.
        found: NodeId,
    },
    /// Log and state do not belong together.
    #[error("log and state of the data directory do not belong together: {0}")]
    Mixed(String),
    /// The disk has lost entries that this member had acknowledged to its leader, and perhaps votes.
    #[error(
        "expected the log up to entry {acknowledged}, which this member had acknowledged, but it ends at {last}: the disk \
         has lost data"
    )]
    TailLost {
        /// The last entry that it had acknowledged.
        acknowledged: u64,
        /// The last entry that it has.
        last: u64,
    },
    /// The state has diverged, and this node cannot replace it by another member's (design rule
    /// 11).
    #[error(
        "the state differs from the majority's, and cannot be replaced by another member's: {0}"
    )]
    NotRebuilt(io::Error),
    /// The peers belong to another cluster.
    #[error(
        "this data directory belongs to cluster {own}, but the peer at {address} belongs to cluster {other}"
    )]
    OtherCluster {
        /// The directory's cluster.
        own: String,
        /// The peer's cluster.
        other: String,
        /// The peer's address.
        address: String,
    },
    /// A peer has another id than the configuration says.
    #[error("expected node {expected} at {address}, but found node {found}",
        expected = expected.0, found = found.0)]
    PeerIdDiffers {
        /// The peer's address.
        address: String,
        /// The id in the list of peers.
        expected: NodeId,
        /// The id of the node there.
        found: NodeId,
    },
    /// Another process runs on a copy of the directory, or this is the copy.
    #[error(
        "expected no other process of node {}, but one responds at {address}, its peer address",
        node_id.0
    )]
    Twin {
        /// The id of both.
        node_id: NodeId,
        /// The address of the other process.
        address: String,
    },
    /// The directory is empty, but the cluster knows this node with another one.
    #[error("node {} is a member of cluster {cluster_id}, but its data directory is empty",
        node_id.0)]
    WipedMember {
        /// This node's id.
        node_id: NodeId,
        /// The cluster's id.
        cluster_id: String,
    },
    /// The directory is empty and the cluster exists without this node.
    #[error("cluster {cluster_id} exists already, and node {} is not one of its members",
        node_id.0)]
    NodeNotMember {
        /// This node's id.
        node_id: NodeId,
        /// The cluster's id.
        cluster_id: String,
    },
    /// The cluster has removed this member.
    #[error("node {} was removed from its cluster", .0.0)]
    Removed(NodeId),
    /// The directory is empty, and the cluster has removed a member of this id.
    #[error("node {} was a member of cluster {cluster_id} and was removed", node_id.0)]
    NodeIdRetired {
        /// This node's id.
        node_id: NodeId,
        /// The cluster's id.
        cluster_id: String,
    },
    /// This node is not in its own list of peers.
    #[error("expected node {} in the list of peers, but it is not there", .0.0)]
    NotListed(NodeId),
    /// The cluster could not be formed.
    #[error("the cluster cannot be formed: {0}")]
    Formation(String),
    /// The cluster has agreed on rules that this binary does not know (design rule 12).
    #[error(
        "the cluster has agreed on engine version {agreed}, but this binary knows {known} at most"
    )]
    EngineVersionUnknown {
        /// The cluster's engine version.
        agreed: u32,
        /// The newest engine version that this binary knows.
        known: u32,
    },
    /// The peer address cannot be used.
    #[error("peers cannot be served on {address}: {error}")]
    Listen {
        /// The configured peer address.
        address: SocketAddr,
        /// The I/O error.
        error: io::Error,
    },
    /// The tuning is inconsistent.
    #[error("the tuning cannot be used: {0}")]
    Tuning(String),
    /// openraft refuses to start.
    #[error("consensus cannot start: {0}")]
    Consensus(String),
    /// The system cannot create threads.
    #[error("a thread cannot be started: {0}")]
    Thread(io::Error),
}

/// What to do about a peer of another cluster.
const OTHER_CLUSTER: &str = "check --peers and --data-dir: one of them belongs to another cluster; if the peer's was \
                             restored from a backup of this one, this data directory is obsolete";
/// How a member restarts with an empty directory without endangering the others' data.
const REJOIN: &str = "keep the directory for inspection and leave this node stopped; replace it: \
    `flo cluster remove` its id, start a node with --join, a new node id and an empty directory, then \
    `flo cluster add-learner` and `promote`";

impl StartError {
    /// What to do about [`StartError::Removed`].
    pub const REMOVED_HINT: &'static str = "its data directory is obsolete; to use the machine again, start a node with \
                                            --join, a new node id and an empty directory";

    /// The error for a log that ends at `last`, although the member has acknowledged more.
    pub(crate) fn tail_lost(acknowledged: LogId, last: Option<LogId>) -> Self {
        Self::TailLost {
            acknowledged: acknowledged.index(),
            last: last.map_or(0, |last| last.index()),
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Directory { .. } => "check the path and its permissions".to_owned(),
            Self::InUse(_) => {
                "stop the other process, or give this one its own --data-dir".to_owned()
            }
            Self::Storage { error, .. } => storage_hint(error),
            Self::Log { .. } | Self::State { .. } | Self::Mixed(_) => rejoin_or_restore(),
            Self::NotRebuilt(_) => {
                "check the disk's free space and permissions, and that the binary is as new as \
                 the other members'; then restart the process"
                    .to_owned()
            }
            Self::TailLost { .. } => format!(
                "its votes may be lost too, so it must not vote under its old id: {REJOIN}"
            ),
            Self::OtherNode { .. } => {
                "start it with the node id that created the directory, or with its own --data-dir"
                    .to_owned()
            }
            Self::OtherCluster { .. } => OTHER_CLUSTER.to_owned(),
            Self::PeerIdDiffers { .. } | Self::NotListed(_) => {
                "give every first member the same --peers list; replace a member that has lost \
                 its directory after the members changed: start it with --join and a new node id"
                    .to_owned()
            }
            Self::Twin { .. } => {
                "two processes must not vote as one node: stop one of them, and never start a copied data directory \
                 beside the original; to add a node, start it with --join, a new node id and an empty directory"
                    .to_owned()
            }
            Self::WipedMember { .. } => {
                "a member that lost its directory must not vote under its old id: restore the \
                 directory, or replace the member: `flo cluster remove` the old id, start this \
                 node with --join and a new node id, then `flo cluster add-learner` and `promote` \
                 it"
                    .to_owned()
            }
            Self::NodeNotMember { .. } => {
                "check --node-id and --peers; to add a node, start it with --join instead of \
                 --peers, then `flo cluster add-learner`"
                    .to_owned()
            }
            Self::Removed(_) => Self::REMOVED_HINT.to_owned(),
            Self::NodeIdRetired { .. } => {
                "the id of a removed member is never used again: choose a new --node-id".to_owned()
            }
            Self::EngineVersionUnknown { .. } => {
                "start the binary that the other members run, or a newer one: once all members \
                 know an engine version, the only way back is a backup from before"
                    .to_owned()
            }
            Self::Listen { .. } => "give --peer-listen an address that is free".to_owned(),
            Self::Tuning(_) => "return to the default tuning".to_owned(),
            Self::Formation(_) | Self::Consensus(_) | Self::Thread(_) => {
                "restart the process; if it fails again, report it with the log".to_owned()
            }
        }
    }
}

/// What to do about a log or a state that cannot be opened.
fn storage_hint(error: &StorageError) -> String {
    match error {
        StorageError::InUse => {
            "stop the other process, or give this one its own --data-dir".to_owned()
        }
        StorageError::HalfRestored => {
            "delete the directory, and restore the backup again".to_owned()
        }
        StorageError::Incomplete(_) => format!(
            "nothing was deleted: put back what is missing; if that is impossible and other members are healthy, \
             {REJOIN}; otherwise restore a backup"
        ),
        StorageError::Corrupt(_) | StorageError::Failed(_) => rejoin_or_restore(),
    }
}

fn rejoin_or_restore() -> String {
    format!("if other members are healthy, {REJOIN}; otherwise restore a backup")
}
