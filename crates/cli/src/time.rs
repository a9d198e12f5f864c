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

/// Parses a time in RFC 3339, or milliseconds since the Unix epoch.
///
/// # Errors
/// A sentence, if the text has another form or the time is before 1970.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a time such as 2027-01-01T06:00:00Z, but found \"{text}\"");
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| expected());
    }
    let at = DateTime::parse_from_rfc3339(text).map_err(|_| expected())?;
    u64::try_from(at.timestamp_millis()).map_err(|_| expected())
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
    fn a_time_is_read_in_either_form() {
        assert_eq!(parse("2026-03-01T10:30:00.25+01:00"), Ok(1_772_357_400_250));
        assert_eq!(parse("1772357400250"), Ok(1_772_357_400_250));
        for wrong in ["", "tomorrow", "2026-03-01", "1960-01-01T00:00:00Z", "-5"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_past_the_calendar_is_shown_as_it_is() {
        assert_eq!(show(u64::MAX), u64::MAX.to_string());
    }
}
