//! Changes of the membership and of the leader, and why they are refused.

use crate::attempt::SubmitError;
use flotilla_engine::NodeId;
use serde::{Deserialize, Serialize};

/// A change of the membership or of the leader. Repeating a request after a lost response is
/// harmless; only a transfer without a target moves the leadership again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClusterChange {
    /// Adds a node without a vote: it receives the log from now on.
    AddLearner {
        /// The node's id, which was never used before.
        node_id: NodeId,
        /// Its peer address, as `host:port`; the node must be running and empty.
        peer_address: String,
    },
    /// Makes a learner a voter, once it has caught up.
    PromoteLearner {
        /// The learner to promote.
        node_id: NodeId,
    },
    /// Removes a member permanently; its id is never used again.
    RemoveNode {
        /// The member to remove.
        node_id: NodeId,
    },
    /// Transfers leadership to another voter.
    TransferLeader {
        /// The voter; unset for the one that follows most closely.
        to: Option<NodeId>,
    },
    /// Drains a member: it keeps its vote, but does not lead, and ends waiting calls.
    DrainNode {
        /// The member to drain.
        node_id: NodeId,
    },
    /// Ends the drain of a member. Needs no leader.
    UndrainNode {
        /// The drained member.
        node_id: NodeId,
    },
}

/// Why a change was refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ChangeRefusal {
    /// No node responds at the address.
    #[error("expected a node at {0}, but none responds")]
    NodeUnreachable(String),
    /// Another node responds at the address.
    #[error("expected node {} at {address}, but found node {}", expected.0, found.0)]
    NodeMismatch {
        /// The address that was probed.
        address: String,
        /// The node that should be there.
        expected: NodeId,
        /// The node that is there.
        found: NodeId,
    },
    /// The node has data: of another cluster, or from an earlier use.
    #[error("expected node {} to be empty, but it has data of another cluster", .0.0)]
    NodeNotEmpty(NodeId),
    /// The id belonged to a member that was removed (docs/design.md, "Raft": ids are never reused).
    #[error("expected a new node id, but node {} was a member and was removed", .0.0)]
    NodeIdRetired(NodeId),
    /// The id belongs to a member at another address.
    #[error("expected a new node id, but node {} is a member, at {address}", node_id.0)]
    NodeIdInUse {
        /// The requested id.
        node_id: NodeId,
        /// The address of that member.
        address: String,
    },
    /// The address belongs to another member.
    #[error("expected an unused address, but {address} is that of node {}", node_id.0)]
    AddressInUse {
        /// The requested address.
        address: String,
        /// The node at that address.
        node_id: NodeId,
    },
    /// The cluster has no such member.
    #[error("expected a member, but node {} is not one", .0.0)]
    NodeNotMember(NodeId),
    /// The member is a learner, so it cannot lead.
    #[error("expected a voter, but node {} is a learner", .0.0)]
    NodeNotVoter(NodeId),
    /// The member did not catch up in time.
    #[error("expected node {} to have caught up, but it is {lag} entries behind", node_id.0)]
    NodeLagging {
        /// The member that lags.
        node_id: NodeId,
        /// How many entries it is behind.
        lag: u64,
    },
    /// Without this node there would be no voter.
    #[error("expected another voter to remain, but node {} is the last one", .0.0)]
    LastVoter(NodeId),
    /// Too few of the voters before or after the change respond.
    #[error("expected most of the {voters} voters to respond, but only {answering} did")]
    QuorumAtRisk {
        /// The number of voters, before or after the change.
        voters: u64,
        /// How many of them respond.
        answering: u64,
    },
    /// An earlier change is in progress.
    #[error("expected no other membership change, but one is in progress")]
    MembershipChangeInProgress,
    /// The voter does not respond, or none has taken over in time. The next leader is not
    /// determined then.
    #[error("expected another voter to take over, but none did in time")]
    LeadershipTransferTimeout,
    /// The node's binary is older than the agreed engine version (design rule 12).
    #[error(
        "expected node {} to know engine version {agreed}, but its binary knows {known} at most",
        node_id.0
    )]
    BinaryTooOld {
        /// The node that is too old.
        node_id: NodeId,
        /// The cluster's engine version.
        agreed: u32,
        /// The newest engine version that the node knows.
        known: u32,
    },
    /// The member does not respond.
    #[error("expected node {} to respond, but it does not", .0.0)]
    NodeUnresponsive(NodeId),
    /// The voter is drained, so it must not lead.
    #[error("expected a voter that may lead, but node {} is drained", .0.0)]
    VoterDrained(NodeId),
    /// All other voters are down or drained.
    #[error("expected a voter other than node {} that is up and not drained, but there is none", .0.0)]
    NoVoterToLead(NodeId),
}

impl ChangeRefusal {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NodeUnreachable(_) => {
                "start it with --join and this --peer-listen, and check the address"
            }
            Self::NodeMismatch { .. } => "check the node id and the address",
            Self::NodeNotEmpty(_) => "give the node an empty --data-dir and an unused node id",
            Self::NodeIdRetired(_) | Self::NodeIdInUse { .. } => {
                "start the node with an id that was never used, and an empty --data-dir"
            }
            Self::AddressInUse { .. } => "`flo cluster status` shows the members",
            Self::NodeNotMember(_) => {
                "`flo cluster status` shows the members; `flo cluster add-learner` adds one"
            }
            Self::NodeNotVoter(_) => "make it a voter first: `flo cluster promote`",
            Self::NodeLagging { .. } => "retry; `flo cluster status` shows its progress",
            Self::LastVoter(_) => "promote another node first",
            Self::QuorumAtRisk { .. } => {
                "restore the other voters first: without most of them nothing can be written"
            }
            Self::NodeUnresponsive(_) => {
                "start the node; `flo cluster status` shows which members are up"
            }
            Self::VoterDrained(_) => {
                "choose another voter, or end the drain with `flo cluster undrain`"
            }
            Self::NoVoterToLead(_) => {
                "start another voter, or end its drain with `flo cluster undrain`; `flo cluster status` shows them"
            }
            Self::BinaryTooOld { .. } => "start the node with the binary that the members run",
            Self::MembershipChangeInProgress => "retry when it has ended",
            Self::LeadershipTransferTimeout => {
                "retry; `flo cluster status` shows which voters are up and close"
            }
        }
    }
}

/// Why it is unknown whether a change was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Refused: nothing has changed.
    #[error(transparent)]
    Refused(#[from] ChangeRefusal),
    /// It was not evaluated, or there is no response.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// The result of an evaluated change: whether anything had to change.
pub(crate) type ChangeResult = Result<bool, ChangeRefusal>;
