//! Why a handler did not process its record.

use crate::error::chain;
use std::error::Error;
use std::time::Duration;

/// The worker's delay after the first attempt. It doubles with each attempt, so that the record survives an outage of
/// what its handler depends on: the 10 deliveries that a group allows by default take 8.5 min.
const DELAY_MIN: Duration = Duration::from_secs(1);
/// The worker's longest delay.
const DELAY_MAX: Duration = Duration::from_mins(5);

/// Why a handler did not process its record: the record is returned, and redelivered until it
/// reaches the maximum deliveries.
///
/// The operator `?` converts any error into it. It does not implement `std::error::Error`, because
/// the conversion would then be ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The error for people; logged by the worker.
    pub message: String,
    /// The delay before the record is redelivered; `None`: the worker's, which is 1 s after the first
    /// attempt, doubles with each further one and is at most 5 min.
    pub delay: Option<Duration>,
}

impl RecordError {
    /// An error after which the record is redelivered with the worker's delay.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            delay: None,
        }
    }

    /// The same error; the record is redelivered after the delay, at most a day.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self {
            delay: Some(delay),
            ..self
        }
    }

    /// The delay before the record is redelivered, after its `attempt`, which counts from 1.
    pub(super) fn delay_after(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(u32::BITS - 1);
        let usual = DELAY_MIN.saturating_mul(1 << doublings).min(DELAY_MAX);
        self.delay.unwrap_or(usual)
    }
}

impl<E: Error> From<E> for RecordError {
    fn from(error: E) -> Self {
        Self::new(chain(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_with_each_attempt_unless_the_handler_gives_one() {
        let error = RecordError::new("later");
        let seconds = |attempt| error.delay_after(attempt).as_secs();
        assert_eq!([1, 2, 3, 9].map(seconds), [1, 2, 4, 256]);
        assert_eq!([10, u32::MAX].map(seconds), [300, 300]);
        let now = error.clone().after(Duration::ZERO);
        assert_eq!(now.delay_after(7), Duration::ZERO);
    }
}
