//! The current time, and times for people.

use chrono::{DateTime, Datelike, Timelike};
use std::time::{SystemTime, UNIX_EPOCH};

/// A time in milliseconds since the Unix epoch, as `2026-03-01T09:30:00.250Z`.
pub(crate) fn show(at_ms: u64) -> String {
    let at = i64::try_from(at_ms)
        .ok()
        .and_then(DateTime::from_timestamp_millis);
    let Some(at) = at else {
        return at_ms.to_string();
    };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at_ms % 1_000
    )
}

/// The same, or a dash for `None`.
pub(crate) fn show_optional(at_ms: Option<u64>) -> String {
    at_ms.map_or_else(|| "-".to_owned(), show)
}

/// The time by this machine's clock, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_utc_with_milliseconds() {
        assert_eq!(show(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(show(1_772_357_400_250), "2026-03-01T09:30:00.250Z");
        assert_eq!(show_optional(None), "-");
    }

    #[test]
    fn a_time_past_the_calendar_is_shown_as_it_is() {
        assert_eq!(show(u64::MAX), u64::MAX.to_string());
    }
}
