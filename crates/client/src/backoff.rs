//! Delays between attempts: exponential, capped, with jitter.

use std::time::Duration;

const DELAY_MIN: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_millis(400);

/// A backoff that grows with each delay taken from it.
///
/// The cap is low because clients mostly wait for an election, which takes about a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    taken: u32,
}

impl Backoff {
    /// The next delay: at most twice the previous one, with jitter down to half of it, so that
    /// clients of the same failed leader do not return simultaneously.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let whole = DELAY_MIN
            .saturating_mul(1 << self.taken.min(10))
            .min(DELAY_MAX);
        self.taken = self.taken.saturating_add(1);
        rand::random_range(whole / 2..=whole)
    }

    /// Starts again from the shortest delay.
    pub(crate) fn reset(&mut self) {
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_and_fall_back_on_reset() {
        let mut backoff = Backoff::default();
        assert!(backoff.next_delay() <= DELAY_MIN);
        for _ in 0..40 {
            assert!(backoff.next_delay() <= DELAY_MAX);
        }
        assert!(backoff.next_delay() >= DELAY_MAX / 2);
        backoff.reset();
        assert!(backoff.next_delay() <= DELAY_MIN);
    }
}
