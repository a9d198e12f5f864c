//! Workflow definitions and their revisions (W5).

use super::{Key, tables};
use crate::definition::Definition;
use crate::ids::{Namespace, WorkflowName, WorkflowVersion};
use serde::{Deserialize, Serialize};

/// A definition's number, to which a run is permanently pinned (W5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DefinitionNumber(pub u64);

impl Key for DefinitionNumber {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        u64::decode(bytes).map(Self)
    }
}

tables! {
    /// By name and version. Live as long as the workflow.
    3 Versions((Namespace, WorkflowName, WorkflowVersion)) -> VersionRecord;
    /// By number. Kept as long as the workflow.
    4 Definitions(DefinitionNumber) -> DefinitionRecord, HOT;
    /// The text that a definition was made from. Lives as long as the definition.
    5 DefinitionSources(DefinitionNumber) -> String => |source| source.len();
    /// Definitions by the fingerprint of their content, so that the same content is the same
    /// revision (W5). Live as long as the definition.
    26 RevisionsByContent((Namespace, WorkflowName, WorkflowVersion, u64, DefinitionNumber)) -> ();
    /// Definitions by version and revision. Live as long as the workflow.
    100 Revisions((Namespace, WorkflowName, WorkflowVersion, u32)) -> DefinitionNumber;
}

/// One version label of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// The newest revision of the version, which `--version` selects (W5).
    pub newest: DefinitionNumber,
    /// Revisions so far.
    pub revisions_count: u32,
}

/// One revision of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionRecord {
    /// Where it belongs.
    pub namespace: Namespace,
    /// 1, 2, 3 … within its version (W5).
    pub revision: u32,
    /// When it was created, in milliseconds.
    pub created_at_ms: u64,
    /// What the engine executes.
    pub definition: Definition,
}
