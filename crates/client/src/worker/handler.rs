//! Handlers and their errors.

use super::{ActionContext, ActionResult};
use crate::error::chain;
use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The handler of an action's tasks.
pub(super) type Handler = Arc<
    dyn Fn(ActionContext) -> BoxFuture<'static, Result<ActionResult, HandlerError>> + Send + Sync,
>;

/// What follows a handler's failure (A5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailKind {
    /// Another attempt, while attempts are left.
    Retry,
    /// A permanent failure with a dead letter.
    NoRetry,
    /// A permanent failure without a dead letter; the step's retry is skipped.
    NonRetryable,
}

/// Why a handler failed.
///
/// The operator `?` converts any error into one of kind *retry*. It does not implement
/// `std::error::Error`, because the conversion would then be ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError {
    /// What follows the failure.
    pub kind: FailKind,
    /// A code for plans and programs (W35); empty: no code.
    pub code: String,
    /// What went wrong, for people.
    pub message: String,
    /// The delay of what follows, at most 366 days: it replaces that of a retry (W74).
    pub delay: Option<Duration>,
    /// A patch of the run's state, JSON; empty: none. It is written only if the step has `retry: {keep_state: true}` (W66).
    pub state_patch: Bytes,
    /// What the attempt has used, a JSON object of numbers; empty for nothing.
    pub usage: Box<[u8]>,
}

impl HandlerError {
    /// A failure that may be retried.
    #[must_use]
    pub fn retry(message: impl Into<String>) -> Self {
        Self::new(FailKind::Retry, message)
    }

    /// A permanent failure that becomes a dead letter.
    #[must_use]
    pub fn no_retry(message: impl Into<String>) -> Self {
        Self::new(FailKind::NoRetry, message)
    }

    /// A failure that neither the action nor the step should retry.
    #[must_use]
    pub fn non_retryable(message: impl Into<String>) -> Self {
        Self::new(FailKind::NonRetryable, message)
    }

    /// The same error with a code.
    #[must_use]
    pub fn with_code(self, code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            ..self
        }
    }

    /// The same error; what follows it, such as a retry, happens only after `delay` (W74).
    #[must_use]
    pub fn with_delay(self, delay: Duration) -> Self {
        Self {
            delay: Some(delay),
            ..self
        }
    }

    /// The same error with a patch of the run's state (RFC 7396). It is written only if the step has
    /// `retry: {keep_state: true}` (W66).
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

    /// The same error with what the attempt has used: a JSON object of numbers by name, such as
    /// `{"input_tokens": 120}`, with at most 16 names of 64 bytes. The cluster adds the numbers up by step and run (W87).
    #[must_use]
    pub fn with_usage(self, usage: impl Into<Value>) -> Self {
        self.with_usage_json(usage.into().to_string())
    }

    /// The same as [`Self::with_usage`] with a usage that is already JSON text.
    #[must_use]
    pub fn with_usage_json(self, usage: impl Into<Bytes>) -> Self {
        Self {
            usage: Vec::from(usage.into()).into(),
            ..self
        }
    }

    fn new(kind: FailKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: String::new(),
            message: message.into(),
            delay: None,
            state_patch: Bytes::new(),
            usage: Box::default(),
        }
    }
}

impl<E: Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::retry(chain(&error))
    }
}
