//! The deadline of a request, from the header `grpc-timeout`.

use crate::limits::{DEADLINE_DEFAULT, DEADLINE_MAX, DEADLINE_RESERVE_MAX};
use std::time::Duration;
use tokio::time::Instant;
use tonic::codegen::http::HeaderMap;
use tonic::metadata::MetadataMap;

/// The header that carries a caller's timeout.
const HEADER: &str = "grpc-timeout";
/// The maximum number of digits in the header.
const DIGITS_MAX: usize = 8;

/// How long a call that waits for something may take.
#[derive(Clone, Copy)]
pub(crate) struct WaitBounds {
    /// The deadline of the response, unless the wait itself is longer.
    pub(crate) deadline: Instant,
    /// The caller's own deadline, if it gave one.
    pub(crate) given: Option<Instant>,
}

/// A wait of a caller, and the response to it.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    /// The end of the wait.
    pub(crate) until: Instant,
    /// The deadline of the read from which the response is made.
    pub(crate) read_deadline: Instant,
}

impl WaitBounds {
    /// A wait of this length, or until the caller's deadline.
    pub(crate) fn wait(self, length: Duration) -> Wait {
        let now = Instant::now();
        let end = now + length;
        let Some(given) = self.given else {
            return Wait {
                until: end,
                read_deadline: end + DEADLINE_DEFAULT,
            };
        };
        // `given` is a tenth of the timeout before the caller's own deadline, but at most `DEADLINE_RESERVE_MAX`. The read
        // after the wait may use half of that.
        let reserve = (given.saturating_duration_since(now) / 9).min(DEADLINE_RESERVE_MAX);
        Wait {
            until: given.min(end),
            read_deadline: given + reserve / 2,
        }
    }
}

impl Wait {
    /// A wait until the deadline of the response.
    pub(crate) fn until(deadline: Instant) -> Self {
        let bounds = WaitBounds {
            deadline,
            given: Some(deadline),
        };
        bounds.wait(DEADLINE_MAX)
    }
}

/// The deadline of the response: shortly before the caller's own, so that the caller still receives
/// the error.
pub(crate) fn of(metadata: &MetadataMap) -> Instant {
    given(metadata).unwrap_or_else(|| Instant::now() + DEADLINE_DEFAULT)
}

/// As [`of`]; `None` if the caller sets no timeout.
pub(crate) fn given(metadata: &MetadataMap) -> Option<Instant> {
    in_headers(metadata.as_ref())
}

/// As [`given`], from the headers of a request.
pub(crate) fn in_headers(headers: &HeaderMap) -> Option<Instant> {
    let timeout = parse(headers.get(HEADER)?.to_str().ok()?)?;
    Some(Instant::now() + usable(timeout))
}

/// The part of the caller's timeout that is left for the work.
fn usable(timeout: Duration) -> Duration {
    let timeout = timeout.min(DEADLINE_MAX);
    timeout - (timeout / 10).min(DEADLINE_RESERVE_MAX)
}

/// Parses 1 to 8 digits and a unit, gRPC's form of a timeout.
fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    let is_number = (1..=DIGITS_MAX).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    let value: u64 = is_number.then(|| digits.parse().ok())??;
    match unit {
        'H' => Some(Duration::from_secs(value * 3_600)),
        'M' => Some(Duration::from_secs(value * 60)),
        'S' => Some(Duration::from_secs(value)),
        'm' => Some(Duration::from_millis(value)),
        'u' => Some(Duration::from_micros(value)),
        'n' => Some(Duration::from_nanos(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_in_every_unit_and_nothing_else_is() {
        assert_eq!(parse("2H"), Some(Duration::from_secs(7_200)));
        assert_eq!(parse("3M"), Some(Duration::from_secs(180)));
        assert_eq!(parse("10S"), Some(Duration::from_secs(10)));
        assert_eq!(parse("99999999m"), Some(Duration::from_millis(99_999_999)));
        assert_eq!(parse("7u"), Some(Duration::from_micros(7)));
        assert_eq!(parse("1n"), Some(Duration::from_nanos(1)));
        for text in ["", "S", "10", "999999999S", "-1S", "+1S", "1s", "1 S", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_answer_is_due_a_little_before_the_caller_gives_up() {
        assert_eq!(
            usable(Duration::from_secs(10)),
            Duration::from_millis(9_750)
        );
        assert_eq!(
            usable(Duration::from_millis(100)),
            Duration::from_millis(90)
        );
        assert!(usable(Duration::MAX) < DEADLINE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_before_the_deadline_of_the_caller_and_leaves_time_for_the_response() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let wait = |length, given: Option<Duration>| {
            let given = given.map(|given| now + given);
            let bounds = WaitBounds {
                deadline: given.unwrap_or(now + DEADLINE_DEFAULT),
                given,
            };
            bounds.wait(length)
        };
        let long = wait(300 * second, None);
        assert_eq!(long.until, now + 300 * second);
        assert_eq!(long.read_deadline, long.until + DEADLINE_DEFAULT);
        for timeout in [second / 10, second, 2 * second, 60 * second] {
            let given = usable(timeout);
            let bounded = wait(300 * second, Some(given));
            assert_eq!(bounded.until, now + given);
            assert!(bounded.until < bounded.read_deadline, "{timeout:?}");
            assert!(bounded.read_deadline < now + timeout, "{timeout:?}");
            let none = wait(Duration::ZERO, Some(given));
            assert_eq!(
                (none.until, none.read_deadline),
                (now, bounded.read_deadline)
            );
        }
    }

    #[test]
    fn a_request_that_gives_no_time_has_the_default() {
        assert_eq!(given(&MetadataMap::new()), None);
        assert!(of(&MetadataMap::new()) <= Instant::now() + DEADLINE_DEFAULT);
    }
}
