//! The state of a plan's execution: a part of its run's record (W30–W38).

use super::PayloadRef;
use crate::definition::ExecutorIndex;
use crate::ids::ActionRunNumber;
use serde::{Deserialize, Serialize};

/// One execution of a plan by an active step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanState {
    /// The executors in the order in which they are tried, fixed when the execution began (W30).
    pub order: Vec<ExecutorIndex>,
    /// The position in `order` of the current executor; those before it were tried or skipped.
    pub position: u16,
    /// Its attempt, from 1.
    pub attempt: u32,
    /// When its first attempt began: `within_ms` counts from here (W12). In milliseconds.
    pub started_at_ms: u64,
    /// The last failure; `None` while all executors were skipped.
    pub failure: Option<PlanFailure>,
    /// The plan's invalidations when the execution began, where its result may be cached (W37).
    pub invalidations_count: Option<u64>,
    /// What it waits for.
    pub wait: PlanWait,
}

/// How an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanFailure {
    /// The error's code (W35).
    pub code: String,
    /// What came back.
    pub output: Option<PayloadRef>,
    /// False for a failure that must skip the step's retries, too (A5).
    pub is_retryable: bool,
    /// The earliest time of what follows, in milliseconds, if the executor gave one (W74).
    pub not_before_ms: Option<u64>,
}

/// What a plan's execution waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanWait {
    /// Nothing: this turn selects an executor.
    Executing,
    /// The attempt's action run, or the report on it (W38).
    Action(ActionRunNumber),
    /// The executor's next attempt, at a time in milliseconds.
    Retry {
        /// When it is made.
        due_ms: u64,
    },
}

impl PlanState {
    /// The current executor; `None` if no executor is left.
    #[must_use]
    pub fn executor(&self) -> Option<ExecutorIndex> {
        self.order.get(usize::from(self.position)).copied()
    }
}
