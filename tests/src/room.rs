//! How much runs at a time: tests run in parallel, and machines are small.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Server processes at a time: one cluster of five, or one of three and two nodes beside it.
const PROCESSES_MAX: usize = 5;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// The right to run a number of server processes, given back when dropped.
#[derive(Debug)]
pub(crate) struct Room {
    processes: usize,
}

impl Room {
    /// Waits until there is room for so many processes.
    pub(crate) fn take(processes: usize) -> Self {
        assert!(processes <= PROCESSES_MAX, "there is never so much room");
        let has_no_room = |taken: &mut usize| *taken + processes > PROCESSES_MAX;
        let mut taken = FREED
            .wait_while(lock(), has_no_room)
            .unwrap_or_else(PoisonError::into_inner);
        *taken += processes;
        Self { processes }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        *lock() -= self.processes;
        FREED.notify_all();
    }
}

fn lock() -> MutexGuard<'static, usize> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}
