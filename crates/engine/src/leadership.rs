//! What a new leader says first (A4).

use crate::ids::Namespace;
use crate::limits::LEADER_GRACE_MS;
use crate::reply::Done;
use crate::tables::Cluster;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Begins a leader's term: every lease and every worker's health gets 10 s of grace, and events say
/// which term they are from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeginTerm {
    /// The consensus term, above 0. It names what begins, so saying it again changes nothing.
    pub term: u64,
}

impl BeginTerm {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> Outcome<Done> {
        let mut cluster = turn.cluster()?;
        // A leader's word may arrive late, forwarded to the leader that has taken its place.
        if self.term > cluster.term {
            cluster.term = self.term;
            cluster.grace_until_ms = turn.now_ms() + LEADER_GRACE_MS;
            turn.put::<Cluster>(&(), cluster);
        }
        Ok(Done {})
    }
}
