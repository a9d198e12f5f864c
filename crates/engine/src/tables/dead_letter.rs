//! Dead letters: action runs that failed permanently and can be requeued (A6).

use super::{ActionRunStatus, TaskError, tables};
use crate::ids::{ActionName, ActionRunNumber, Namespace, RunId, StepName};
use crate::json::Json;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

tables! {
    /// By action, in the order in which their action runs failed permanently. Live until requeued, purged or dropped
    /// for newer ones; the action run itself may be deleted earlier.
    45 DeadLetters((Namespace, ActionName, u64)) -> DeadLetterRecord;
    /// The inputs of dead letters, because those of the action runs may be deleted. Live as long as the dead letter.
    46 DeadLetterInputs((Namespace, ActionName, u64)) -> Json => |input| input.as_str().len();
    /// The places of dead letters, by the action run that failed. Live as long as the dead letter.
    68 DeadLetterPlaces((Namespace, ActionName, ActionRunNumber)) -> u64;
    /// The counts of each action that ever had a dead letter. Live as long as the namespace.
    47 DeadLetterQueues((Namespace, ActionName)) -> DeadLetterQueueRecord;
}

/// An action run that failed permanently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterRecord {
    /// The action run.
    pub action_run: ActionRunNumber,
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
    /// Its size as counted against the limit: the input plus a constant, in bytes.
    pub bytes: u64,
    /// When the action run was created, in milliseconds.
    pub created_at_ms: u64,
    /// When it failed permanently, in milliseconds.
    pub died_at_ms: u64,
}

/// The counts of an action's dead letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterQueueRecord {
    /// The current number of dead letters.
    pub dead_letter_count: u64,
    /// Their total counted size, in bytes.
    pub letters_bytes: u64,
    /// The number of dead letters that were ever dropped for newer ones.
    pub dropped_count: u64,
    /// No dead letter has a place before this one.
    pub first_place: u64,
    /// The place of the next dead letter.
    pub next_place: u64,
}
