//! Workflows: what all definitions of one name share.

use super::{DefinitionNumber, tables};
use crate::ids::{Namespace, WorkflowName};
use serde::{Deserialize, Serialize};

tables! {
    /// By name. Lives as long as the namespace.
    2 Workflows((Namespace, WorkflowName)) -> WorkflowRecord, HOT;
}

/// A workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    /// Whether new starts are allowed (W42).
    pub is_enabled: bool,
    /// The revision that starts use when they name no version (W5).
    pub latest: DefinitionNumber,
}
