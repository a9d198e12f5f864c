//! Durations as fields of requests.

use std::time::Duration;

/// A duration in whole milliseconds.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
