//! Compares the timing of this node with its leader's.
//!
//! `election_ms` is a setting of each node, because consensus takes its timing at its start only. Nodes with different
//! timing are safe, but hold needless elections: a leader that sends heartbeats less often than a follower expects them
//! loses its leadership. So a leader sends its timing with each append, and each follower reports a difference (ADR 0051).

use flotilla_engine::NodeId;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Two members with different timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimingMismatch {
    /// This node's minimum election timeout, in milliseconds.
    pub own_ms: u64,
    /// The leader.
    pub leader: NodeId,
    /// The leader's minimum election timeout, in milliseconds.
    pub leader_ms: u64,
}

impl fmt::Display for TimingMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "expected the same `election_ms` on all nodes, but this node has {} and the leader, node {}, has {}",
            self.own_ms, self.leader.0, self.leader_ms
        )
    }
}

/// Compares this node's timing with its leader's.
pub(crate) struct Timing {
    own_ms: u64,
    /// The last leader that has sent its timing.
    leader: Mutex<Option<(u64, u64)>>,
}

impl Timing {
    /// No leader is known yet; `own_ms` is this node's minimum election timeout, in milliseconds.
    pub(crate) fn new(own_ms: u64) -> Self {
        Self {
            own_ms,
            leader: Mutex::default(),
        }
    }

    /// Records the timing that a leader has sent; 0 if it has sent none.
    pub(crate) fn note(&self, leader: u64, election_ms: u64) {
        let noted = (election_ms > 0).then_some((leader, election_ms));
        {
            let mut known = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
            if *known == noted {
                return;
            }
            *known = noted;
        }
        if let Some(mismatch) = self.mismatch(Some(NodeId(leader))) {
            tracing::warn!("{mismatch}; set it to the same value on all nodes and restart them");
        }
    }

    /// How this node's timing differs from that of `leader`, the current one; `None` if it does not, as far as known.
    pub(crate) fn mismatch(&self, leader: Option<NodeId>) -> Option<TimingMismatch> {
        let leader = leader?;
        let known = *self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, leader_ms) = known.filter(|(node_id, _)| *node_id == leader.0)?;
        (leader_ms != self.own_ms).then_some(TimingMismatch {
            own_ms: self.own_ms,
            leader,
            leader_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timing_differs_only_from_that_of_the_current_leader() {
        let timing = Timing::new(300);
        let (first, second) = (Some(NodeId(1)), Some(NodeId(2)));
        assert_eq!(timing.mismatch(first), None, "unknown");
        timing.note(1, 900);
        let found = timing.mismatch(first).expect("it differs");
        assert_eq!((found.own_ms, found.leader_ms), (300, 900));
        assert_eq!(timing.mismatch(None), None, "no leader");
        assert_eq!(timing.mismatch(second), None, "another leader");
        timing.note(2, 300);
        assert_eq!(timing.mismatch(second), None, "the same");
        timing.note(2, 0);
        assert_eq!(timing.mismatch(second), None, "not sent");
    }
}
