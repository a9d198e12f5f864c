//! The items of loops, and the results of their iterations (W57).

use super::{TaskError, tables};
use crate::ids::{OutcomeName, RunNumber};
use crate::json::Json;
use serde::{Deserialize, Serialize};

tables! {
    /// By run, activation of the step and index. Live until the iteration ends or the step is left.
    80 Items((RunNumber, u64, u32)) -> ItemRecord => |item| item.value.as_str().len();
    /// By run, activation of the step and index: what the end of the step needs to know of an iteration that has ended.
    /// Live until the step is left.
    81 IterationResults((RunNumber, u64, u32)) -> IterationResult => IterationResult::content_bytes;
}

/// An item whose iteration has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemRecord {
    /// The element of the array.
    pub value: Json,
}

/// How an iteration ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationResult {
    /// Its outcome.
    pub outcome: OutcomeName,
    /// Its output, if the step collects it.
    pub output: Option<Json>,
    /// Why it failed, if it did.
    pub error: Option<TaskError>,
    /// False if its failure is non-retryable (A5).
    pub is_retryable: bool,
    /// Whether it has state writes that are joined when the step ends.
    pub has_written: bool,
}

impl IterationResult {
    fn content_bytes(&self) -> usize {
        let output = self
            .output
            .as_ref()
            .map_or(0, |output| output.as_str().len());
        let error = self.error.as_ref();
        output + error.map_or(0, |error| error.code.len() + error.message.len())
    }
}
