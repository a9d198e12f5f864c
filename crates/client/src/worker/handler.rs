//! Handlers and their errors.

use super::{ActionContext, ActionResult};
use crate::error::chain;
use futures::future::BoxFuture;
use std::error::Error;
use std::sync::Arc;

/// What runs one action's tasks.
pub(super) type Handler = Arc<
    dyn Fn(ActionContext) -> BoxFuture<'static, Result<ActionResult, HandlerError>> + Send + Sync,
>;

/// What becomes of a task whose handler failed (A5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailKind {
    /// Another attempt, while there are any left.
    Retry,
    /// Failed for good, to the dead-letter queue.
    NoRetry,
    /// Failed for good, no dead letter, and the step's own retry is skipped.
    NonRetryable,
}

/// Why a handler failed.
///
/// Any error turns into one of kind *retry* with the operator `?`. It is no `std::error::Error`
/// itself, or that could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError {
    /// What becomes of the task.
    pub kind: FailKind,
    /// A code for plans and programs (W35); empty: none.
    pub code: String,
    /// What went wrong, for people.
    pub message: String,
}

impl HandlerError {
    /// The task may be tried again.
    #[must_use]
    pub fn retry(message: impl Into<String>) -> Self {
        Self::new(FailKind::Retry, message)
    }

    /// The task is not to be tried again; it goes to the dead-letter queue.
    #[must_use]
    pub fn no_retry(message: impl Into<String>) -> Self {
        Self::new(FailKind::NoRetry, message)
    }

    /// Trying again would be pointless, in the action and in the step.
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

    fn new(kind: FailKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: String::new(),
            message: message.into(),
        }
    }
}

impl<E: Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::retry(chain(&error))
    }
}
