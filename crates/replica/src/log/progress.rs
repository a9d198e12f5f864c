//! Whether the log's writes return: a disk that hangs reports no error.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The progress of the log's writes.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// Queued or being written.
    unfinished: u64,
    finished: u64,
    /// When the oldest unfinished write could begin.
    since: Instant,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                unfinished: 0,
                finished: 0,
                since: Instant::now(),
            }),
        }
    }
}

impl Progress {
    /// Notes that a write is about to be queued.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        if state.unfinished == 0 {
            state.since = Instant::now();
        }
        state.unfinished += 1;
    }

    /// Notes that this many writes have returned.
    pub(crate) fn end(&self, count: u64) {
        let mut state = self.state();
        state.unfinished = state.unfinished.saturating_sub(count);
        state.finished += count;
        state.since = Instant::now();
    }

    /// The age of the oldest unfinished write, without the time that it waited for earlier ones; zero if there is none.
    pub(crate) fn age(&self) -> Duration {
        let state = self.state();
        if state.unfinished == 0 {
            return Duration::ZERO;
        }
        state.since.elapsed()
    }

    /// The number of writes that have returned, if another one is unfinished.
    pub(crate) fn waits_after(&self) -> Option<u64> {
        let state = self.state();
        (state.unfinished > 0).then_some(state.finished)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
