//! Workflows: the state shared by all definitions of one name.

use super::{DefinitionNumber, tables};
use crate::ids::{Namespace, WorkflowName};
use serde::{Deserialize, Serialize};

tables! {
    /// By name. Live until they are deleted.
    2 Workflows((Namespace, WorkflowName)) -> WorkflowRecord, HOT;
    /// How many workflows a namespace has, with those that are being deleted. Lives as long as they do.
    70 WorkflowCounts(Namespace) -> u64;
    /// Deleted workflows of which rows are left; they have no other record. Live until those rows are deleted.
    75 WorkflowsBeingDeleted((Namespace, WorkflowName)) -> ();
}

/// A workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    /// Whether new runs may start (W42).
    pub is_enabled: bool,
    /// The latest revision, which new runs use if they name no version (W5).
    pub latest: DefinitionNumber,
    /// Its revisions, of all versions.
    pub revisions_count: u32,
    /// The total size of the texts of its revisions, in bytes.
    pub revisions_bytes: u64,
}
