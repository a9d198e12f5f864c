//! What a handler returns.

use bytes::Bytes;
use serde_json::Value;

const SUCCESS: &str = "success";

/// What a handler returns: an outcome and an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionResult {
    outcome: String,
    output: Bytes,
}

impl ActionResult {
    /// The outcome `success`.
    #[must_use]
    pub fn success(output: impl Into<Value>) -> Self {
        Self::named(SUCCESS, output)
    }

    /// An outcome that a workflow has a transition for. `pending` asks to be polled (W14), and
    /// `failure` fails the step without another attempt of the action (A4a). The execution-level
    /// names `target_not_found`, `target_disabled` and `execution_failure` are refused: the task
    /// then fails.
    #[must_use]
    pub fn named(outcome: impl Into<String>, output: impl Into<Value>) -> Self {
        Self::named_json(outcome, output.into().to_string())
    }

    /// The outcome `success` with an output that is JSON text already. The server refuses what is
    /// not JSON, and the task then fails.
    #[must_use]
    pub fn success_json(output: impl Into<Bytes>) -> Self {
        Self::named_json(SUCCESS, output)
    }

    /// The same as [`Self::named`] with an output that is JSON text already.
    #[must_use]
    pub fn named_json(outcome: impl Into<String>, output: impl Into<Bytes>) -> Self {
        Self {
            outcome: outcome.into(),
            output: output.into(),
        }
    }

    /// The outcome.
    #[must_use]
    pub fn outcome(&self) -> &str {
        &self.outcome
    }

    /// The output, JSON.
    #[must_use]
    pub fn output(&self) -> &Bytes {
        &self.output
    }

    pub(super) fn into_parts(self) -> (String, Bytes) {
        (self.outcome, self.output)
    }
}

impl From<Value> for ActionResult {
    fn from(output: Value) -> Self {
        Self::success(output)
    }
}
