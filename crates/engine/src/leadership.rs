//! The command with which a new leader begins its term (A4).

use crate::limits::LEADER_GRACE_MS;
use crate::reply::Done;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Begins a leader's term. Every lease and every worker's health gets 10 s of grace, and later events carry the term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginTerm {
    /// The Raft term, above 0. It makes the command idempotent.
    pub term: u64,
}

impl BeginTerm {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        // The command may arrive late, forwarded to the next leader.
        if self.term > turn.cluster().term {
            let grace_until_ms = turn.now_ms() + LEADER_GRACE_MS;
            let cluster = turn.cluster_mut();
            cluster.term = self.term;
            cluster.grace_until_ms = grace_until_ms;
        }
        Ok(Done {})
    }
}
