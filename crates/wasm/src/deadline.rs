//! When a call must have ended.

use crate::error::InvocationError;
use std::time::{Duration, Instant};

/// What stands in for a timeout that the machine's clock cannot hold: nobody waits longer.
const FAR_AWAY: Duration = Duration::from_hours(100 * 365 * 24);

/// The end of a call's time.
///
/// The epoch ends guests that compute. This ends those that wait: a host function which has waited
/// for the store or slept asks it before it goes back to the guest, which might return at once and
/// never meet the epoch again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    timeout_ms: u64,
}

impl Deadline {
    pub(crate) fn starting_now(timeout_ms: u64) -> Self {
        let now = Instant::now();
        let at = now
            .checked_add(Duration::from_millis(timeout_ms))
            .unwrap_or_else(|| now + FAR_AWAY);
        Self { at, timeout_ms }
    }

    pub(crate) fn at(self) -> Instant {
        self.at
    }

    pub(crate) fn remaining(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// # Errors
    /// [`InvocationError::TimedOut`] once the time is over.
    pub(crate) fn check(self) -> Result<(), InvocationError> {
        if self.remaining().is_zero() {
            return Err(InvocationError::TimedOut {
                timeout_ms: self.timeout_ms,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_when_its_time_is_over_and_the_longest_timeout_has_one() {
        let timed_out = Err(InvocationError::TimedOut { timeout_ms: 0 });
        assert_eq!(Deadline::starting_now(0).check(), timed_out);
        assert_eq!(Deadline::starting_now(u64::MAX).check(), Ok(()));
    }
}
