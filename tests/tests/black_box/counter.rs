//! Counts the progress of clients.

use flotilla_tests::TIMEOUT;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Counts completed calls, for tests that wait for a number of them.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    count: Mutex<u64>,
    grown: Condvar,
}

impl Counter {
    /// Counts one more.
    pub(crate) fn add(&self) {
        *self.lock() += 1;
        self.grown.notify_all();
    }

    /// The current count.
    pub(crate) fn count(&self) -> u64 {
        *self.lock()
    }

    /// Waits until the count has reached this number.
    pub(crate) fn await_count(&self, count: u64) {
        let waited = self
            .grown
            .wait_timeout_while(self.lock(), TIMEOUT, |found| *found < count);
        let (found, timeout) = waited.expect("counting does not panic");
        assert!(
            !timeout.timed_out(),
            "expected {count} calls to be answered, but after {TIMEOUT:?} there are {found}"
        );
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().expect("counting does not panic")
    }
}
