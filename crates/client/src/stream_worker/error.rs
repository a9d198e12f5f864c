//! Why a handler did not process its record.

use crate::error::chain;
use std::error::Error;
use std::time::Duration;

/// Why a handler did not process its record: the record is returned, and redelivered until it
/// reaches the maximum deliveries.
///
/// The operator `?` converts any error into it. It does not implement `std::error::Error`, because
/// the conversion would then be ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The error for people; logged by the worker.
    pub message: String,
    /// The delay before the record is redelivered.
    pub delay: Duration,
}

impl RecordError {
    /// An error after which the record may be redelivered immediately.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            delay: Duration::ZERO,
        }
    }

    /// The same error; the record is redelivered after the delay, at most a day.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

impl<E: Error> From<E> for RecordError {
    fn from(error: E) -> Self {
        Self::new(chain(&error))
    }
}
