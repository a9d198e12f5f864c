//! Lengths of time on the command line.

use std::time::Duration;

/// Reads `500ms`, `10s`, `2m`, or a bare number of seconds.
///
/// # Errors
/// A sentence, when it is none of these, or 0.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        _ => return Err(expected(text)),
    };
    let number: u64 = digits.parse().map_err(|_| expected(text))?;
    match number.checked_mul(unit_ms) {
        None | Some(0) => Err(expected(text)),
        Some(total_ms) => Ok(Duration::from_millis(total_ms)),
    }
}

fn expected(text: &str) -> String {
    format!("expected a time above 0 as 500ms, 10s, 2m or 10, but it is {text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_milliseconds_seconds_and_minutes() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("7"), Ok(Duration::from_secs(7)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
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
            "1h",
            "10 s",
            "99999999999999999999m",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(
            parse(&format!("{}m", u64::MAX)).is_err(),
            "more than there are"
        );
    }
}
