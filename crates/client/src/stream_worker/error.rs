//! Why a handler did not process its record.

use crate::error::chain;
use std::error::Error;
use std::time::Duration;

/// Why a handler did not process its record: it is given back, and delivered again until it was
/// delivered too often.
///
/// Any error turns into one with the operator `?`. It is no `std::error::Error` itself, or that could
/// not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// What went wrong, for people: it is logged here.
    pub message: String,
    /// How long the record is not delivered again.
    pub delay: Duration,
}

impl RecordError {
    /// The record may be delivered again at once.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            delay: Duration::ZERO,
        }
    }

    /// The same error; the record is delivered again after the delay, at most a day.
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
