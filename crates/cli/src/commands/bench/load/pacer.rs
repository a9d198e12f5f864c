//! Pacing: announces when operations begin at a fixed rate.
//!
//! It uses a dedicated thread, because tokio's timers have a resolution of one millisecond, as long
//! as some of the latencies to measure.

use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NANOSECONDS: u64 = 1_000_000_000;

/// The start of the operation with this number, relative to the first one.
pub(super) fn offset(number: u64, rate: u32) -> Duration {
    let rate = u64::from(rate);
    // The first product stays below 10^9 times the rate, because only the remainder of the division
    // is multiplied.
    Duration::from_secs(number / rate) + Duration::from_nanos(number % rate * NANOSECONDS / rate)
}

/// The number of operations that should have begun this long after the first one.
pub(super) fn count(passed: Duration, rate: u32) -> u64 {
    let nanoseconds = passed.as_nanos() * u128::from(rate) / u128::from(NANOSECONDS);
    u64::try_from(nanoseconds).map_or(u64::MAX, |whole| whole + 1)
}

/// Sends each start time when it has come, until the token is cancelled or the receiver is dropped.
/// A full channel delays the sending, but does not change the times.
pub(super) fn pace(
    first: Instant,
    rate: u32,
    dues: &mpsc::Sender<Instant>,
    stop: &CancellationToken,
) {
    for number in 0.. {
        let due = first + offset(number, rate);
        rest(due.saturating_duration_since(Instant::now()));
        if stop.is_cancelled() || dues.blocking_send(due).is_err() {
            return;
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "it waits more precisely than tokio's timers"
)]
fn rest(length: Duration) {
    if !length.is_zero() {
        std::thread::sleep(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_far_apart_as_the_rate_says_and_do_not_drift() {
        assert_eq!(offset(0, 3), Duration::ZERO);
        assert_eq!(offset(1, 4), Duration::from_millis(250));
        assert_eq!(offset(3_000_001, 3), Duration::new(1_000_000, 333_333_333));
        assert_eq!(
            offset(1_000_000_000_000, 1_000_000),
            Duration::from_secs(1_000_000)
        );
    }

    #[test]
    fn as_many_are_due_as_have_had_their_time() {
        for (number, rate) in [(0, 3), (1, 3), (3_000_001, 3), (12_345, 100_000)] {
            let due = offset(number, rate);
            let counted = count(due + Duration::from_nanos(1), rate);
            assert_eq!(counted, number + 1, "{number} at {rate}");
        }
    }
}
