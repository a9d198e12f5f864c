//! Dead letters: tasks that failed for good and may be run again by hand (A6).

use super::{ActionRunStatus, TaskError, tables};
use crate::ids::{ActionName, ActionRunNumber, Namespace, RunId, StepName};
use crate::json::Json;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By action and the action run that failed. Live until requeued, purged, or pushed out by newer
    /// ones; the action run itself may be forgotten before.
    45 DeadLetters((Namespace, ActionName, ActionRunNumber)) -> DeadLetterRecord;
    /// Their inputs, since those of the action runs may be forgotten. Live as long as the letter.
    46 DeadLetterInputs((Namespace, ActionName, ActionRunNumber)) -> Json;
    /// What is counted for each action that ever had a letter. Live as long as the namespace.
    47 DeadLetterQueues((Namespace, ActionName)) -> DeadLetterQueueRecord;
}

/// An action run that failed for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterRecord {
    /// How it ended: failed or timed out.
    pub status: ActionRunStatus,
    /// Why its last attempt failed.
    pub error: Option<TaskError>,
    /// Attempts made.
    pub attempts: u32,
    /// The action run's priority, kept when it is requeued.
    pub priority: u8,
    /// The action run's labels (A3), kept when it is requeued.
    pub labels: BTreeMap<String, String>,
    /// The workflow run and step that it ran for.
    pub step: Option<(RunId, Option<StepName>)>,
    /// When the action run was created, in milliseconds.
    pub created_at_ms: u64,
    /// When it failed for good, in milliseconds.
    pub died_at_ms: u64,
}

/// What is counted of an action's dead letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterQueueRecord {
    /// Letters now.
    pub letters_count: u64,
    /// Letters that newer ones have pushed out, ever.
    pub dropped_count: u64,
}
