//! What a handler returns.

use bytes::Bytes;
use serde_json::Value;
use std::time::Duration;

const SUCCESS: &str = "success";

/// The result of a handler: an outcome and an output, or the promise of a later report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionResult {
    pub(super) answer: Answer,
    pub(super) delay: Option<Duration>,
}

/// The handler's decision about its task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The task is done.
    Outcome { outcome: String, output: Bytes },
    /// The work continues elsewhere; the outcome comes by a report (W38).
    Accepted,
}

impl ActionResult {
    /// The outcome `success`.
    #[must_use]
    pub fn success(output: impl Into<Value>) -> Self {
        Self::named(SUCCESS, output)
    }

    /// An outcome that selects a transition of the workflow. `pending` asks to be polled (W14), and
    /// `failure` fails the step without another attempt of the action (A4a). The execution-level
    /// outcomes `target_not_found`, `target_disabled` and `execution_failure` are refused: the task
    /// then fails.
    #[must_use]
    pub fn named(outcome: impl Into<String>, output: impl Into<Value>) -> Self {
        Self::named_json(outcome, output.into().to_string())
    }

    /// The outcome `success` with an output that is already JSON text. If it is not JSON, the
    /// server refuses it and the task fails.
    #[must_use]
    pub fn success_json(output: impl Into<Bytes>) -> Self {
        Self::named_json(SUCCESS, output)
    }

    /// The same as [`Self::named`] with an output that is already JSON text.
    #[must_use]
    pub fn named_json(outcome: impl Into<String>, output: impl Into<Bytes>) -> Self {
        let (outcome, output) = (outcome.into(), output.into());
        Self {
            answer: Answer::Outcome { outcome, output },
            delay: None,
        }
    }

    /// The same result; what follows it happens only after `delay`, at most 366 days: the next step,
    /// the next poll, or the retry, whose own delay is replaced (W74).
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> Self {
        Self {
            delay: Some(delay),
            ..self
        }
    }

    /// Accepts the task: its outcome comes later, by
    /// [`Client::report_task`](crate::Client::report_task) or over HTTP, with the same token (W38).
    ///
    /// See [`can_accept`](crate::ActionContext::can_accept): any other task then fails without retry, code `task_not_tracked`.
    #[must_use]
    pub fn accepted() -> Self {
        Self {
            answer: Answer::Accepted,
            delay: None,
        }
    }

    /// Whether the outcome comes later.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.answer == Answer::Accepted
    }

    /// The outcome; `None` if it comes later.
    #[must_use]
    pub fn outcome(&self) -> Option<&str> {
        match &self.answer {
            Answer::Outcome { outcome, .. } => Some(outcome),
            Answer::Accepted => None,
        }
    }

    /// The output, JSON; `None` if it comes later.
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
