//! What a handler returns.

use bytes::Bytes;
use serde_json::Value;

const SUCCESS: &str = "success";

/// What a handler returns: an outcome and an output, or the word that they come later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionResult {
    pub(super) answer: Answer,
}

/// What a handler says of its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is done.
    Outcome { outcome: String, output: Bytes },
    /// It goes on elsewhere; its outcome comes by a report (W38).
    Accepted,
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
        let (outcome, output) = (outcome.into(), output.into());
        Self {
            answer: Answer::Outcome { outcome, output },
        }
    }

    /// The task is accepted: its outcome comes later, by
    /// [`Client::report_task`](crate::Client::report_task) or over HTTP, with the same token (W38).
    ///
    /// Only a task with [`report_timeout`](crate::ActionContext::report_timeout) can be accepted;
    /// another one then fails without retry, code `task_not_tracked`.
    #[must_use]
    pub fn accepted() -> Self {
        Self {
            answer: Answer::Accepted,
        }
    }

    /// Whether the outcome comes later.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.answer == Answer::Accepted
    }

    /// The outcome; none when it comes later.
    #[must_use]
    pub fn outcome(&self) -> Option<&str> {
        match &self.answer {
            Answer::Outcome { outcome, .. } => Some(outcome),
            Answer::Accepted => None,
        }
    }

    /// The output, JSON; none when it comes later.
    #[must_use]
    pub fn output(&self) -> Option<&Bytes> {
        match &self.answer {
            Answer::Outcome { output, .. } => Some(output),
            Answer::Accepted => None,
        }
    }
}

impl From<Value> for ActionResult {
    fn from(output: Value) -> Self {
        Self::success(output)
    }
}
