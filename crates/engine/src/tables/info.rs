//! Info entries of runs (W92).

use super::{DefinitionNumber, ScopeId, tables};
use crate::definition::StepIndex;
use crate::ids::{ActionRunNumber, RunNumber};
use crate::json::Json;
use serde::{Deserialize, Serialize};

tables! {
    /// The info entries of a run by their number, from 1. Live as long as the run.
    97 Infos((RunNumber, u32)) -> InfoRecord => |record| record.content.as_str().len();
}

/// An info entry of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoRecord {
    /// When it was added, in milliseconds.
    pub at_ms: u64,
    /// The task that added it; `None` if a caller did.
    pub task: Option<InfoTask>,
    /// A JSON object.
    pub content: Json,
}

/// A task that reports on its progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoTask {
    /// The definition that the run had.
    pub definition: DefinitionNumber,
    /// The scope of its step.
    pub scope: ScopeId,
    /// Its step.
    pub step: StepIndex,
    /// The visit to the step in its scope, from 1.
    pub visit: u32,
    /// Its action run.
    pub action_run: ActionRunNumber,
    /// The attempt, from 1.
    pub attempt: u32,
}
