//! The deadline of a call.

use crate::error::InvocationError;
use std::time::{Duration, Instant};

/// Replaces a timeout that the machine's clock cannot represent: no call takes longer.
const FAR_AWAY: Duration = Duration::from_hours(100 * 365 * 24);

/// The deadline of a call.
///
/// The epoch ends guests that compute. This ends those that wait: a host function that has waited
/// for the store, or slept, checks it before it returns to the guest, which might return
/// immediately and never reach the next epoch check.
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
