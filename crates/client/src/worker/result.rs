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
    /// JSON; empty without one.
    pub(super) state_patch: Bytes,
    pub(super) usage: Bytes,
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
            state_patch: Bytes::new(),
            usage: Bytes::new(),
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

    /// The same result with a patch of the run's state, a JSON object: its fields are written in depth, and `null` removes
    /// one (RFC 7396). The step's `set` sees the patched state. The state has at most 256 KiB; a patch that cannot be
    /// written fails the attempt, code `bad_state` (W66). An action run without a workflow run ignores it, and so does an
    /// accepted task, whose report can have a patch.
    #[must_use]
    pub fn with_state_patch(self, patch: impl Into<Value>) -> Self {
        self.with_state_patch_json(patch.into().to_string())
    }

    /// The same as [`Self::with_state_patch`] with a patch that is already JSON text.
    #[must_use]
    pub fn with_state_patch_json(self, patch: impl Into<Bytes>) -> Self {
        Self {
            state_patch: patch.into(),
            ..self
        }
    }

    /// The same result with what the attempt has used: a JSON object of numbers by name, such as
    /// `{"input_tokens": 120}`, with at most 16 names of 64 bytes. The cluster adds the numbers up by step and run (W87).
    #[must_use]
    pub fn with_usage(self, usage: impl Into<Value>) -> Self {
        self.with_usage_json(usage.into().to_string())
    }

    /// The same as [`Self::with_usage`] with a usage that is already JSON text.
    #[must_use]
    pub fn with_usage_json(self, usage: impl Into<Bytes>) -> Self {
        Self {
            usage: usage.into(),
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
            state_patch: Bytes::new(),
            usage: Bytes::new(),
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

    /// The patch of the run's state, JSON, if there is one.
    #[must_use]
    pub fn state_patch(&self) -> Option<&Bytes> {
        Some(&self.state_patch).filter(|patch| !patch.is_empty())
    }

    /// What the attempt has used, JSON, if anything.
    #[must_use]
    pub fn usage(&self) -> Option<&Bytes> {
        Some(&self.usage).filter(|usage| !usage.is_empty())
    }

    /// The delay of what follows, if there is one.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        self.delay
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
