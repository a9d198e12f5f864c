//! The ids of removed members, which are never used again.

use crate::fatal::FatalError;
use crate::lifecycle::Lifecycle;
use crate::state::rows;
use crate::state::store::StateStore;
use flotilla_engine::NodeId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Reads the ids of removed members. Clones share what it depends on.
#[derive(Clone)]
pub(crate) struct RetiredIds {
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) lifecycle: Lifecycle,
}

impl RetiredIds {
    /// Whether the id belonged to a removed member.
    pub(crate) fn contains(&self, node_id: NodeId) -> bool {
        // If it is unreadable, the id must not be used.
        self.read()
            .is_none_or(|retired| retired.contains(&node_id.0))
    }

    /// The ids of removed members, as far as this node has applied; `None` if they cannot be read,
    /// which ends the replica.
    pub(crate) fn read(&self) -> Option<BTreeSet<u64>> {
        match rows::retired(self.store.reader().as_ref()) {
            Ok(retired) => Some(retired),
            Err(error) => {
                self.lifecycle
                    .fail(FatalError::Consensus(error.to_string()));
                None
            }
        }
    }
}
