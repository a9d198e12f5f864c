//! Durations as definitions write them: ISO 8601 (`PT15M`, `P1DT12H`) and a short form (`15m`, `1h30m`, `200ms`) (W79).

/// A unit and its length in milliseconds.
type Unit = (&'static str, u64);

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

const ISO_DATE: [Unit; 2] = [("W", 7 * DAY), ("D", DAY)];
const ISO_TIME: [Unit; 3] = [("H", HOUR), ("M", MINUTE), ("S", SECOND)];
const SHORT: [Unit; 5] = [
    ("d", DAY),
    ("h", HOUR),
    ("m", MINUTE),
    ("s", SECOND),
    ("ms", 1),
];

/// The length of a duration in milliseconds; `None` if the text is not one.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let Some(iso) = text.strip_prefix('P') else {
        return sum(text, &SHORT);
    };
    match iso.split_once('T') {
        None => sum(iso, &ISO_DATE),
        Some(("", time)) => sum(time, &ISO_TIME),
        Some((date, time)) => sum(date, &ISO_DATE)?.checked_add(sum(time, &ISO_TIME)?),
    }
}

/// The sum of numbers with units, each unit at most once and the larger ones first.
fn sum(text: &str, units: &[Unit]) -> Option<u64> {
    let mut total: u64 = 0;
    let (mut rest, mut units) = (text, units);
    loop {
        let number_end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(number_end);
        let number: u64 = number.parse().ok()?;
        let unit_end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (name, after) = after.split_at(unit_end);
        let position = units.iter().position(|(unit, _)| *unit == name)?;
        total = total.checked_add(number.checked_mul(units[position].1)?)?;
        (rest, units) = (after, &units[position + 1..]);
        if rest.is_empty() {
            return Some(total);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_durations_have_days_and_times() {
        for (text, length_ms) in [
            ("PT15M", 15 * MINUTE),
            ("P1D", DAY),
            ("P2W", 14 * DAY),
            ("P1W1DT1H1M1S", 8 * DAY + HOUR + MINUTE + SECOND),
            ("PT0S", 0),
            ("P0D", 0),
        ] {
            assert_eq!(parse(text), Some(length_ms), "{text}");
        }
    }

    #[test]
    fn the_short_form_has_descending_units() {
        for (text, length_ms) in [
            ("15m", 15 * MINUTE),
            ("1h30m", HOUR + 30 * MINUTE),
            ("200ms", 200),
            ("1d2h3m4s5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5),
            ("90s", 90 * SECOND),
        ] {
            assert_eq!(parse(text), Some(length_ms), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused() {
        for text in [
            "",
            "P",
            "PT",
            "P1",
            "P1M",
            "P1Y",
            "PT1D",
            "P1H",
            "PT1H1H",
            "PT1M1H",
            "PTS",
            "P1DT",
            "T1H",
            "15",
            "m",
            "15 m",
            "1.5h",
            "PT0.5S",
            "30m1h",
            "1h1h",
            "-1h",
            "+1h",
            "1H",
            "1ms1s",
            "15m ",
            "99999999999999999999s",
            "18446744073709551615d",
            "P1٣D",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
