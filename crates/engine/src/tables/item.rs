//! The items of steps that execute a block for each of them, and how the iterations ended (W57).

use super::{TaskError, tables};
use crate::ids::{OutcomeName, RunNumber};
use crate::json::Json;
use serde::{Deserialize, Serialize};

tables! {
    /// By run, activation of the step and index. Live until the iteration ends or the step is left.
    80 Items((RunNumber, u64, u32)) -> ItemRecord => |item| item.value.as_str().len();
    /// By run, activation of the step and index: what the end of the step needs to know of an iteration that has ended.
    /// Live until the step is left.
    81 ItemResults((RunNumber, u64, u32)) -> ItemResult => ItemResult::content_bytes;
}

/// An item whose iteration has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemRecord {
    /// The element of the array.
    pub value: Json,
}

/// How an iteration ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemResult {
    /// Its outcome.
    pub outcome: OutcomeName,
    /// Its output, if the step collects it.
    pub output: Option<Json>,
    /// Why it failed, if it did.
    pub error: Option<TaskError>,
    /// False if it failed in a way that must not be tried again (A5).
    pub is_retryable: bool,
    /// Whether its writes to the state wait for the end of the step.
    pub has_written: bool,
}

impl ItemResult {
    fn content_bytes(&self) -> usize {
        let output = self
            .output
            .as_ref()
            .map_or(0, |output| output.as_str().len());
        let error = self.error.as_ref();
        output + error.map_or(0, |error| error.code.len() + error.message.len())
    }
}
