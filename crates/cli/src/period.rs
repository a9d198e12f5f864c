//! Durations on the command line.

use flotilla_dsl::duration;
use std::time::Duration;

/// Parses a duration in the form that definitions use, such as `500ms`, `1h30m` or `PT15M` (W79), or a plain number of
/// seconds.
///
/// # Errors
/// A sentence, if the text is 0 or has another form.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let length_ms = match text.parse::<u64>() {
        Ok(seconds) => seconds.checked_mul(1_000),
        Err(_) => duration::parse(text),
    };
    match length_ms {
        None | Some(0) => Err(expected(text)),
        Some(length_ms) => Ok(Duration::from_millis(length_ms)),
    }
}

/// A duration in whole milliseconds.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// A duration for people, in tenths of a second from one second up: `500ms`, `1.5s`, `30s`, `60m`.
pub(crate) fn show(length: Duration) -> String {
    let total_ms = length.as_millis();
    let (seconds, tenths) = (total_ms / 1_000, total_ms % 1_000 / 100);
    match (seconds, tenths) {
        (0, _) => format!("{total_ms}ms"),
        (_, 0) if seconds >= 120 && seconds % 60 == 0 => format!("{}m", seconds / 60),
        (_, 0) => format!("{seconds}s"),
        (_, _) => format!("{seconds}.{tenths}s"),
    }
}

/// A duration for people, from a number of milliseconds.
pub(crate) fn show_ms(length_ms: u64) -> String {
    show(Duration::from_millis(length_ms))
}

fn expected(text: &str) -> String {
    format!(
        "expected a duration above 0 such as 500ms, 10s, 1h30m, 7d, PT15M or 10, but it is {text:?}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_go_from_milliseconds_to_days() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("7"), Ok(Duration::from_secs(7)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("1h"), Ok(Duration::from_secs(3_600)));
        assert_eq!(parse("7d"), Ok(Duration::from_secs(604_800)));
    }

    #[test]
    fn the_forms_of_definitions_are_accepted() {
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse("PT15M"), Ok(Duration::from_secs(900)));
        assert_eq!(parse("P1D"), Ok(Duration::from_secs(86_400)));
    }

    #[test]
    fn a_length_is_shown_in_the_unit_that_it_is_given_in() {
        let lengths = [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (1_550, "1.5s"),
            (30_000, "30s"),
            (90_000, "90s"),
            (300_000, "5m"),
            (3_600_000, "60m"),
        ];
        for (length_ms, text) in lengths {
            assert_eq!(show_ms(length_ms), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "s",
            "0",
            "0ms",
            "-1s",
            "1.5s",
            "1w",
            "10 s",
            "99999999999999999999m",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(
            parse(&format!("{}m", u64::MAX)).is_err(),
            "more than there are"
        );
        assert!(parse(&u64::MAX.to_string()).is_err(), "in milliseconds");
    }
}
