//! Notices that this process did not run for a while: it was stopped, or its machine was suspended.
//!
//! What its connections have received meanwhile may be minutes old, and its callers have repeated it at other nodes. So
//! it is not read: the connections are closed. The engine rejects what is forwarded too late anyway (design rule 9), but
//! only if its id has a time.

use crate::limits::SUSPENSION_MIN;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::sleep;

/// How often an idle process looks at the clock.
const TICK: Duration = Duration::from_millis(500);

/// How often this process did not run for a while.
#[derive(Debug)]
pub(super) struct Suspensions {
    // A std mutex: it is never held across an await.
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// When this process ran last. By the wall clock: a monotonic clock does not advance while the machine is
    /// suspended. If the wall clock is set forward, connections are closed for nothing.
    ran: SystemTime,
    count: u64,
}

impl Suspensions {
    /// None until now.
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                ran: SystemTime::now(),
                count: 0,
            }),
        }
    }

    /// Looks at the clock from time to time, so that an idle process does not count as suspended.
    pub(super) async fn watch(&self) -> Infallible {
        loop {
            self.count();
            sleep(TICK).await;
        }
    }

    /// The number of suspensions until now.
    pub(super) fn count(&self) -> u64 {
        let now = SystemTime::now();
        let mut state = self.state();
        let gap = now.duration_since(state.ran).unwrap_or_default();
        state.ran = now;
        if gap >= SUSPENSION_MIN {
            state.count += 1;
            let seconds = gap.as_secs();
            tracing::warn!(
                seconds,
                "this process did not run: its connections are closed"
            );
        }
        state.count
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No change panics halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As if the process had not run for this long.
    #[cfg(test)]
    pub(super) fn pretend(&self, gap: Duration) {
        self.state().ran -= gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_gap_is_a_suspension() {
        let suspensions = Suspensions::new();
        suspensions.pretend(SUSPENSION_MIN / 2);
        assert_eq!(suspensions.count(), 0);
        suspensions.pretend(SUSPENSION_MIN);
        assert_eq!(suspensions.count(), 1);
        assert_eq!(suspensions.count(), 1);
    }
}
