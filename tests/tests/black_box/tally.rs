//! How far clients are.

use flotilla_tests::PATIENCE;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Counts what clients have done, for those who wait for a number of it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    count: Mutex<u64>,
    grown: Condvar,
}

impl Tally {
    /// One more.
    pub(crate) fn add(&self) {
        *self.lock() += 1;
        self.grown.notify_all();
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        *self.lock()
    }

    /// Waits until there are so many.
    pub(crate) fn await_count(&self, count: u64) {
        let waited = self
            .grown
            .wait_timeout_while(self.lock(), PATIENCE, |found| *found < count);
        let (found, timeout) = waited.expect("nobody panics while counting");
        assert!(
            !timeout.timed_out(),
            "expected {count} calls to be answered, but after {PATIENCE:?} there are {found}"
        );
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().expect("nobody panics while counting")
    }
}
