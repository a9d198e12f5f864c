//! What the tasks of runs have used (W87).

use super::tables;
use crate::definition::StepIndex;
use crate::ids::RunNumber;
use crate::json::Json;
use serde::{Deserialize, Serialize};

tables! {
    /// What the tasks of a run and of the runs below it have used, by run. Live as long as the run.
    98 RunUsages(RunNumber) -> RunUsageRecord => RunUsageRecord::content_bytes;
    /// What the tasks of a step have used, in all visits and scopes, by run. Live as long as the run.
    99 StepUsages((RunNumber, StepIndex)) -> Json => |sums| sums.as_str().len();
}

/// Sums by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunUsageRecord {
    /// Those of the run's own tasks: an object of numbers.
    pub own: Json,
    /// Those of the runs below it: an object of numbers.
    pub below: Json,
}

impl RunUsageRecord {
    /// Its size, in bytes.
    fn content_bytes(&self) -> usize {
        self.own.as_str().len() + self.below.as_str().len()
    }
}
