//! Limits how many processes run at the same time: tests run in parallel, and machines are small.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The maximum number of server processes: one cluster of five, or one of three with two nodes beside it.
const PROCESSES_MAX: usize = 5;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// The right to run a number of server processes, returned when dropped.
#[derive(Debug)]
pub(crate) struct ProcessSlots {
    processes: usize,
}

impl ProcessSlots {
    /// Waits until there are slots for this many processes.
    pub(crate) fn take(processes: usize) -> Self {
        assert!(processes <= PROCESSES_MAX, "more slots than exist");
        let has_no_slot = |taken: &mut usize| *taken + processes > PROCESSES_MAX;
        let mut taken = FREED
            .wait_while(lock(), has_no_slot)
            .unwrap_or_else(PoisonError::into_inner);
        *taken += processes;
        Self { processes }
    }
}

impl Drop for ProcessSlots {
    fn drop(&mut self) {
        *lock() -= self.processes;
        FREED.notify_all();
    }
}

fn lock() -> MutexGuard<'static, usize> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}
