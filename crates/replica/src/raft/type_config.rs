//! openraft's type configuration, and short names for the resulting types.

#![allow(
    deprecated,
    reason = "the macro names openraft's own re-export of its tokio runtime, and no other is public here"
)]

use crate::membership::Member;
use crate::proposal::Proposal;
use flotilla_engine::{Rejection, Reply};

openraft::declare_raft_types!(
    /// Standard Raft: one leader per term, so a log id is a term and an index.
    pub(crate) TypeConfig:
        D = Proposal,
        R = ApplyOutput,
        NodeId = u64,
        Node = Member,
        LeaderId = openraft::impls::leader_id_std::LeaderId<Self::Term, Self::NodeId>,
);

/// The result of applying an entry, for its proposer.
#[derive(Debug, Default)]
pub(crate) struct ApplyOutput {
    /// One reply per command of the entry, in order; empty for other entries.
    pub(crate) replies: Vec<Result<Reply, Rejection>>,
}

pub(crate) type LogId = openraft::type_config::alias::LogIdOf<TypeConfig>;

/// The handle on openraft's core.
pub(crate) type ConsensusHandle = openraft::Raft<TypeConfig, crate::state::machine::Machine>;
