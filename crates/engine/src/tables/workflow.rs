//! Workflows: the state shared by all definitions of one name.

use super::{DefinitionNumber, tables};
use crate::ids::{Namespace, WorkflowName};
use serde::{Deserialize, Serialize};

tables! {
    /// By name. Lives as long as the namespace.
    2 Workflows((Namespace, WorkflowName)) -> WorkflowRecord, HOT;
    /// How many workflows a namespace has. Lives as long as they do.
    70 WorkflowCounts(Namespace) -> u64;
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
