//! The command with which a new leader begins its term (A4).

use crate::ids::Namespace;
use crate::limits::LEADER_GRACE_MS;
use crate::reply::Done;
use crate::tables::Cluster;
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Begins a leader's term. Every lease and every worker's health gets 10 s of grace, and later events carry the term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginTerm {
    /// The Raft term, above 0. It makes the command idempotent.
    pub term: u64,
}

impl BeginTerm {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> TurnResult<Done> {
        let mut cluster = turn.cluster()?;
        // The command may arrive late, forwarded to the next leader.
        if self.term > cluster.term {
            cluster.term = self.term;
            cluster.grace_until_ms = turn.now_ms() + LEADER_GRACE_MS;
            turn.put::<Cluster>(&(), cluster);
        }
        Ok(Done {})
    }
}
