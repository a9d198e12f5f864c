//! Records operations while they happen.

use super::{Operation, Outcome};
use flotilla_client::{ClientError, ErrorKind};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A time in a run, in microseconds since it began.
pub type Moment = u64;

/// Records operations while they happen, from many clients.
#[derive(Debug)]
pub struct Recorder {
    start: Instant,
    operations: Mutex<Vec<Operation>>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            operations: Mutex::default(),
        }
    }
}

impl Recorder {
    /// The current time.
    #[must_use]
    pub fn now(&self) -> Moment {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Records an operation that has returned.
    pub fn record(&self, operation: Operation) {
        self.lock().push(operation);
    }

    /// How many operations have returned.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// All operations, in the order in which they returned.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Operation>> {
        // A push either happened or did not.
        self.operations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a client knows after an error. The outcome is unknown only if the error says that it may have been done.
pub(crate) fn outcome_of(error: &ClientError) -> Outcome {
    match error.kind() {
        ErrorKind::Unknown => Outcome::Unknown,
        ErrorKind::NotFound
        | ErrorKind::Usage
        | ErrorKind::Refused
        | ErrorKind::Retryable
        | ErrorKind::ConnectionFailed => Outcome::Fail,
    }
}

/// An error as a history shows it.
pub(crate) fn describe_error(error: &ClientError) -> Value {
    json!({"code": error.code(), "message": error.message()})
}
