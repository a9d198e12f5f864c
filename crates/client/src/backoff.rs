//! Delays between attempts: doubling, capped, with jitter.

use std::time::Duration;

const DELAY_MIN: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_millis(400);

/// Grows with each delay that is taken from it.
///
/// The cap is low because what clients wait for most is an election, which takes about a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backoff {
    taken: u32,
}

impl Backoff {
    /// The next delay: at most twice the one before, and from half to the whole of it by chance, so
    /// that clients which lost the same leader do not return in step.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let whole = DELAY_MIN
            .saturating_mul(1 << self.taken.min(10))
            .min(DELAY_MAX);
        self.taken = self.taken.saturating_add(1);
        rand::random_range(whole / 2..=whole)
    }

    /// Starts from the shortest delay again.
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
