//! One call of a client.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a client knows of its call (jepsen/README.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was done.
    Ok,
    /// It certainly was not done, and never will be.
    Fail,
    /// It may have been done, or may still be.
    Unknown,
}

/// One call of a client: when it began and returned, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Whose call it is.
    pub workload: String,
    /// Which of the workload's clients; each does one call at a time.
    pub process: u64,
    /// What was asked.
    pub name: String,
    /// Of what.
    pub input: Value,
    /// When the call began, in microseconds since the run began.
    pub invoked_us: u64,
    /// When it returned, in microseconds since the run began.
    pub returned_us: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// The answer, or the reason why there is none.
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
