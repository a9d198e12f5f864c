//! A client's call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The outcome of a call as its client knows it (jepsen/README.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was done.
    Ok,
    /// It was certainly not done, and never will be.
    Fail,
    /// It may have been done, or may still be done.
    Unknown,
}

/// A client's call: its start, end and outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// The workload.
    pub workload: String,
    /// The number of the client; each client makes one call at a time.
    pub process: u64,
    /// The operation.
    pub name: String,
    /// Its subject.
    pub input: Value,
    /// When the call began, in microseconds since the run began.
    pub invoked_us: u64,
    /// When it returned, in microseconds since the run began.
    pub returned_us: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// The response, or why there is no response.
    pub output: Value,
}

impl Operation {
    /// An operation of a test.
    #[cfg(test)]
    pub(crate) fn sample(workload: &str, outcome: Outcome) -> Self {
        Self {
            workload: workload.to_owned(),
            process: 0,
            name: "start".to_owned(),
            input: Value::Null,
            invoked_us: 1,
            returned_us: 2,
            outcome,
            output: Value::Null,
        }
    }
}
