//! Changes of who belongs to the cluster and of who leads it, and why one is refused.

use crate::submit::SubmitError;
use flotilla_engine::NodeId;
use serde::{Deserialize, Serialize};

/// A change of who belongs to the cluster, or of who leads it. Asking for the same one again, after
/// an answer was lost, does no harm; only a transfer to nobody in particular moves the lead again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClusterChange {
    /// Takes in a node without a vote: it receives the log from now on.
    AddLearner {
        /// The node; an id that was never used before.
        node_id: NodeId,
        /// Where its peers reach it, as `host:port`; it must be up, and empty.
        peer_address: String,
    },
    /// Gives a learner a vote, once it has caught up.
    PromoteLearner {
        /// The learner.
        node_id: NodeId,
    },
    /// Takes a member out for good; its id is never used again.
    RemoveNode {
        /// The member.
        node_id: NodeId,
    },
    /// Has another voter lead.
    TransferLeader {
        /// The voter; unset for the one that follows most closely.
        to: Option<NodeId>,
    },
}

/// Why a change was not made. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ChangeRefusal {
    /// No node answers there.
    #[error("expected a node at {0}, but none answers")]
    NodeUnreachable(String),
    /// Another node answers there.
    #[error("expected node {} at {address}, but found node {}", expected.0, found.0)]
    NodeDiffers {
        /// Where.
        address: String,
        /// Who should be there.
        expected: NodeId,
        /// Who is.
        found: NodeId,
    },
    /// The node has data of its own: of another cluster, or of an earlier life.
    #[error("expected node {} to be empty, but it has data of another cluster", .0.0)]
    NodeNotEmpty(NodeId),
    /// The id belonged to a member that was removed (docs/design.md, "Raft": ids are never reused).
    #[error("expected a new node id, but node {} was a member and was removed", .0.0)]
    NodeIdRetired(NodeId),
    /// The id is a member's at another address.
    #[error("expected a new node id, but node {} is a member, at {address}", node_id.0)]
    NodeIdTaken {
        /// The id.
        node_id: NodeId,
        /// Where that member is.
        address: String,
    },
    /// The address is another member's.
    #[error("expected an address of its own, but {address} is that of node {}", node_id.0)]
    AddressTaken {
        /// The address.
        address: String,
        /// Whose it is.
        node_id: NodeId,
    },
    /// There is no such member.
    #[error("expected a member, but node {} is none", .0.0)]
    NotAMember(NodeId),
    /// The member has no vote, and so cannot lead.
    #[error("expected a voter, but node {} has no vote", .0.0)]
    NotAVoter(NodeId),
    /// The learner has not caught up in time.
    #[error("expected node {} to have caught up, but it is {lag} entries behind", node_id.0)]
    LearnerLags {
        /// The learner.
        node_id: NodeId,
        /// How many entries it is behind.
        lag: u64,
    },
    /// Without this node nobody could vote.
    #[error("expected another voter to remain, but node {} is the last one", .0.0)]
    LastVoter(NodeId),
    /// Too few of the voters before the change answer, or of those after it.
    #[error("expected most of the {voters} voters to answer, but only {answering} did")]
    QuorumAtRisk {
        /// How many voters there are, or would be.
        voters: u64,
        /// How many of them answer.
        answering: u64,
    },
    /// An earlier change is under way.
    #[error("expected no other change of members, but one is under way")]
    ChangeUnderWay,
    /// The voter does not answer, or none has taken over in time. Who leads next is open then.
    #[error("expected another voter to take over, but none did in time")]
    NotTakenOver,
    /// The node's binary does not know what the cluster has agreed on (design rule 12).
    #[error(
        "expected node {} to know engine version {agreed}, but its binary knows {known} at most",
        node_id.0
    )]
    BinaryTooOld {
        /// The node.
        node_id: NodeId,
        /// The cluster's engine version.
        agreed: u32,
        /// The newest that the node knows.
        known: u32,
    },
}

impl ChangeRefusal {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NodeUnreachable(_) => {
                "start it with --join and this --peer-listen, and check the address"
            }
            Self::NodeDiffers { .. } => "check the node id and the address",
            Self::NodeNotEmpty(_) => "give the node an empty --data-dir and a node id of its own",
            Self::NodeIdRetired(_) | Self::NodeIdTaken { .. } => {
                "start the node with an id that was never used, and an empty --data-dir"
            }
            Self::AddressTaken { .. } => "`flo cluster status` shows the members",
            Self::NotAMember(_) => {
                "`flo cluster status` shows the members; `flo cluster add-learner` adds one"
            }
            Self::NotAVoter(_) => "give it a vote first: `flo cluster promote`",
            Self::LearnerLags { .. } => {
                "try again; `flo cluster status` shows whether it comes closer"
            }
            Self::LastVoter(_) => "promote another node first",
            Self::QuorumAtRisk { .. } => {
                "bring the other voters back first: nothing could be written without most of them"
            }
            Self::BinaryTooOld { .. } => "start the node with the binary that the members run",
            Self::ChangeUnderWay => "try again when it has ended",
            Self::NotTakenOver => {
                "try again; `flo cluster status` shows which voters are up and close"
            }
        }
    }
}

/// Why it is not known that a change was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Refused: nothing has changed.
    #[error(transparent)]
    Refused(#[from] ChangeRefusal),
    /// It did not get to be judged, or there is no answer.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

/// What became of a change that was judged: whether anything had to change.
pub(crate) type Judged = Result<bool, ChangeRefusal>;
