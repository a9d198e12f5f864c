//! Offers: open polls in an entry, so that the turn that makes a task ready can assign it (design rule 3).

use crate::ids::{ActionName, Namespace, WorkerId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The tasks that an open poll can take (design rule 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// The worker's namespace.
    pub namespace: Namespace,
    /// The worker.
    pub worker: WorkerId,
    /// The leader's open poll to which assignments are delivered.
    pub poll: u64,
    /// The actions that the worker handles.
    pub actions: Vec<ActionName>,
    /// The worker's labels (A3).
    pub labels: BTreeMap<String, String>,
    /// The number of free slots.
    pub slots: u32,
}
