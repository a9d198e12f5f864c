//! Whether this member may stand for election: not while it is drained, and never once its disk has lost entries.

use crate::raft::type_config::ConsensusHandle;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Whether this member may stand for election.
pub(crate) struct Candidacy {
    node_id: u64,
    raft: ConsensusHandle,
    drained: watch::Sender<bool>,
    /// Whether its disk has lost entries that it had acknowledged: it takes part in nothing.
    has_lost_tail: AtomicBool,
}

impl Candidacy {
    /// A member that may stand.
    pub(crate) fn new(node_id: u64, raft: ConsensusHandle) -> Self {
        Self {
            node_id,
            raft,
            drained: watch::Sender::new(false),
            has_lost_tail: AtomicBool::new(false),
        }
    }

    /// Drains this member, or ends its drain; false if it is so already.
    pub(crate) fn set_drained(&self, is_drained: bool) -> bool {
        let changed = self.drained.send_if_modified(|known| {
            self.allow_election(!is_drained);
            std::mem::replace(known, is_drained) != is_drained
        });
        let node_id = self.node_id;
        match (changed, is_drained) {
            (true, true) => tracing::warn!(node_id, "the node is drained until it restarts"),
            (true, false) => tracing::info!(node_id, "the node is no longer drained"),
            (false, _) => {}
        }
        changed
    }

    /// Whether this member is drained.
    pub(crate) fn is_drained(&self) -> bool {
        *self.drained.borrow()
    }

    /// Reports whether this member is drained.
    pub(crate) fn drained(&self) -> watch::Receiver<bool> {
        self.drained.subscribe()
    }

    /// Whether the disk has lost entries that this member had acknowledged.
    pub(crate) fn has_lost_tail(&self) -> bool {
        self.has_lost_tail.load(Ordering::Acquire)
    }

    /// Lets this member stand if `is_needed`, and otherwise unless it is drained.
    pub(crate) fn allow_if(&self, is_needed: bool) {
        // Under the lock of the state, so that the end of a drain cannot be missed.
        self.drained.send_if_modified(|is_drained| {
            self.allow_election(is_needed || !*is_drained);
            false
        });
    }

    /// Notes that the disk has lost entries that this member had acknowledged, and keeps it from standing for election
    /// until it ends, drained or not. False if that is known already.
    pub(crate) fn lose_tail(&self) -> bool {
        if self.has_lost_tail.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.drained.send_if_modified(|_| {
            self.allow_election(false);
            false
        });
        true
    }

    /// Must be called under the lock of `drained`, so that the last caller decides.
    fn allow_election(&self, is_allowed: bool) {
        let has_lost_tail = self.has_lost_tail.load(Ordering::Acquire);
        let elect = is_allowed && !has_lost_tail;
        self.raft.runtime_config().elect(elect);
    }
}
