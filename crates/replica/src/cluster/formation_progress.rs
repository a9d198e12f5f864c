//! What a node without a cluster knows about its formation.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// What a node without a cluster knows about its formation.
#[derive(Debug)]
pub(crate) struct FormationProgress {
    /// The first members; empty on a node that joins.
    first_members: BTreeSet<u64>,
    /// Whether the first members may form a cluster.
    is_requested: AtomicBool,
    /// Whether peers may count on this node: not before it is known not to be a wiped member.
    is_admitted: AtomicBool,
    /// What the node waits for; `None` if it does not wait.
    awaited: watch::Sender<Option<String>>,
}

impl FormationProgress {
    /// The progress at the start of a node.
    pub(crate) fn new(first_members: BTreeSet<u64>) -> Self {
        Self {
            is_requested: AtomicBool::new(first_members.len() == 1),
            first_members,
            is_admitted: AtomicBool::new(false),
            awaited: watch::Sender::new(None),
        }
    }

    /// Notes that a first member was asked to form the cluster; the others may then form it, too.
    pub(crate) fn request_from(&self, node_id: u64) {
        if self.first_members.contains(&node_id) {
            self.is_requested.store(true, Ordering::Release);
        }
    }

    /// Whether the first members may form a cluster.
    pub(crate) fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Acquire)
    }

    /// Whether the node is one of the first members.
    pub(crate) fn is_first_member(&self, node_id: u64) -> bool {
        self.first_members.contains(&node_id)
    }

    /// Lets peers count on this node.
    pub(crate) fn admit(&self) {
        self.is_admitted.store(true, Ordering::Release);
    }

    /// Whether peers may count on this node.
    pub(crate) fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Acquire)
    }

    /// What this node waits for before it belongs to a cluster; `None` if it does not wait.
    pub(crate) fn awaited(&self) -> Option<String> {
        self.awaited.borrow().clone()
    }

    /// Sets what this node waits for.
    pub(crate) fn set_awaited(&self, awaited: Option<String>) {
        self.awaited.send_replace(awaited);
    }
}
