//! Cron expressions and their next firings (W40).
//!
//! The engine never evaluates an expression: the server does so here before it proposes a firing,
//! so that a new version of the time zone database cannot make replicas differ (design rule 1).
//!
//! The wall clock decides. The expression is matched against local times as if days had no gaps;
//! only then is the local time converted to an instant. So a firing in a gap moves to the first
//! minute after it, and one in an overlap happens only in the first pass, whatever its fields are.

use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};

/// A cron expression in a time zone.
#[derive(Clone, Debug)]
pub struct Cron {
    pattern: croner::Cron,
    timezone: Tz,
}

/// Why a cron expression is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronInvalid {
    /// The number of fields.
    #[error("expected 5 fields, but found {0}")]
    Fields(usize),
    /// A field is not made of `*`, `*/n`, `a`, `a-b`, `a-b/n` and commas.
    #[error("expected numbers with `*`, `,`, `-` and `/`, but found {0:?}")]
    Syntax(String),
    /// A number out of its field's range.
    #[error("expected the {part} to be from {min} to {max}, but it is {found}")]
    Number {
        /// The field's name in messages.
        part: &'static str,
        /// The least number allowed.
        min: u32,
        /// The greatest number allowed.
        max: u32,
        /// The number that was found.
        found: u32,
    },
    /// A range that runs backwards, or anything else that the library refuses.
    #[error("{0}")]
    Other(String),
    /// No date ever matches, such as 30 February.
    #[error("expected a date that exists in some year, but none matches: it would never fire")]
    Never,
    /// The IANA time zone database has no such zone.
    #[error("there is no time zone {0:?}")]
    Timezone(String),
}

/// The longest gap or overlap of local time: a day that a zone skipped or repeated when it crossed
/// the date line.
const SHIFT_MINUTES_MAX: usize = 25 * 60;

impl Cron {
    /// Validates a 5-field expression and the name of an IANA zone.
    ///
    /// # Errors
    /// [`CronInvalid`] names the violated rule of W40.
    pub fn new(expression: &str, timezone: &str) -> Result<Self, CronInvalid> {
        let fields: Vec<&str> = expression.split_whitespace().collect();
        if fields.len() != PARTS.len() {
            return Err(CronInvalid::Fields(fields.len()));
        }
        for (field, part) in fields.iter().zip(&PARTS) {
            part.check(field)?;
        }
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let pattern = parser
            .parse(expression)
            .map_err(|error| CronInvalid::Other(error.to_string()))?;
        // A leap day comes at most 8 years after another: one search finds any date that exists.
        let origin = NaiveDate::default()
            .and_hms_opt(0, 0, 0)
            .unwrap_or_default();
        if pattern.find_next_occurrence(&origin, true).is_err() {
            return Err(CronInvalid::Never);
        }
        let timezone = timezone
            .parse()
            .map_err(|_| CronInvalid::Timezone(crate::quote::shorten(timezone)))?;
        Ok(Self { pattern, timezone })
    }

    /// The first firing after `after_ms`, both in milliseconds since the Unix epoch; `None` past
    /// the end of the calendar.
    #[must_use]
    pub fn next_firing(&self, after_ms: u64) -> Option<u64> {
        let after = DateTime::<Utc>::from_timestamp_millis(i64::try_from(after_ms).ok()?)?;
        let mut local = after.with_timezone(&self.timezone).naive_local();
        // In the second pass of an overlap, the local times of the first pass recur, which have
        // already fired: there is at most one for each minute.
        for _ in 0..=SHIFT_MINUTES_MAX {
            local = self.pattern.find_next_occurrence(&local, false).ok()?;
            let firing = self.instant(local)?;
            if firing > after {
                return u64::try_from(firing.timestamp_millis()).ok();
            }
        }
        None
    }

    /// The instant at which clocks show `local`: the first one, or the first minute after a gap.
    fn instant(&self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        let mut local = local;
        for _ in 0..=SHIFT_MINUTES_MAX {
            match self.timezone.from_local_datetime(&local) {
                LocalResult::Single(instant) | LocalResult::Ambiguous(instant, _) => {
                    return Some(instant.with_timezone(&Utc));
                }
                LocalResult::None => local = local.checked_add_signed(TimeDelta::minutes(1))?,
            }
        }
        None
    }
}

/// One of the five fields.
struct Part {
    name: &'static str,
    min: u32,
    max: u32,
}

const PARTS: [Part; 5] = [
    Part {
        name: "minute",
        min: 0,
        max: 59,
    },
    Part {
        name: "hour",
        min: 0,
        max: 23,
    },
    Part {
        name: "day of month",
        min: 1,
        max: 31,
    },
    Part {
        name: "month",
        min: 1,
        max: 12,
    },
    Part {
        name: "day of week",
        min: 0,
        max: 7,
    },
];

impl Part {
    /// Checks that a field is a list of `*`, `*/n`, `a`, `a-b`, `a-b/n` within the part's range:
    /// the library accepts far more.
    fn check(&self, field: &str) -> Result<(), CronInvalid> {
        let syntax = || CronInvalid::Syntax(crate::quote::shorten(field));
        for item in field.split(',') {
            let (range, step) = item
                .split_once('/')
                .map_or((item, None), |(range, step)| (range, Some(step)));
            let step = step
                .map(|step| number(step).filter(|step| *step > 0).ok_or_else(syntax))
                .transpose()?;
            if range == "*" {
                continue;
            }
            let (from, to) = match range.split_once('-') {
                Some((from, to)) => (from, to),
                None if step.is_none() => (range, range),
                None => return Err(syntax()),
            };
            for end in [from, to] {
                let found = number(end).ok_or_else(syntax)?;
                if !(self.min..=self.max).contains(&found) {
                    return Err(CronInvalid::Number {
                        part: self.name,
                        min: self.min,
                        max: self.max,
                        found,
                    });
                }
            }
        }
        Ok(())
    }
}

fn number(text: &str) -> Option<u32> {
    let is_digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firings(expression: &str, timezone: &str, after: &str) -> Vec<String> {
        let cron = Cron::new(expression, timezone).expect("the expression is valid");
        let after: DateTime<Utc> = after.parse().expect("the time is valid");
        let mut after_ms = u64::try_from(after.timestamp_millis()).expect("the time is after 1970");
        (0..3)
            .map(|_| {
                after_ms = cron.next_firing(after_ms).expect("it fires again");
                let firing = DateTime::<Utc>::from_timestamp_millis(
                    i64::try_from(after_ms).expect("it fits"),
                );
                firing.expect("it is a time").naive_utc().to_string()[5..].to_owned()
            })
            .collect()
    }

    fn refusal(expression: &str) -> String {
        Cron::new(expression, "UTC")
            .map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
    }

    #[test]
    fn the_examples_of_the_manual_fire_when_it_says() {
        let after = "2026-03-05T08:59:59.999Z";
        assert_eq!(
            firings("*/5 * * * *", "UTC", after),
            ["03-05 09:00:00", "03-05 09:05:00", "03-05 09:10:00"]
        );
        assert_eq!(
            firings("0 */6 * * *", "UTC", after),
            ["03-05 12:00:00", "03-05 18:00:00", "03-06 00:00:00"]
        );
        assert_eq!(
            firings("0 9 * * 1-5", "UTC", after),
            ["03-05 09:00:00", "03-06 09:00:00", "03-09 09:00:00"]
        );
        assert_eq!(
            firings("0 0 1 * *", "UTC", after),
            ["04-01 00:00:00", "05-01 00:00:00", "06-01 00:00:00"]
        );
        assert_eq!(
            firings("30 2 * * 0", "UTC", after),
            ["03-08 02:30:00", "03-15 02:30:00", "03-22 02:30:00"]
        );
        assert_eq!(
            firings("30 2 * * 7", "UTC", after),
            ["03-08 02:30:00", "03-15 02:30:00", "03-22 02:30:00"]
        );
    }

    #[test]
    fn both_day_fields_are_or_ed_and_a_step_counts_as_set() {
        let after = "2026-03-01T12:00:00Z";
        assert_eq!(
            firings("0 0 13 * 5", "UTC", after),
            ["03-06 00:00:00", "03-13 00:00:00", "03-20 00:00:00"]
        );
        assert_eq!(
            firings("0 0 */10 * 1", "UTC", after),
            ["03-02 00:00:00", "03-09 00:00:00", "03-11 00:00:00"]
        );
    }

    #[test]
    fn a_firing_in_a_gap_moves_to_the_first_minute_after_it() {
        // Berlin, 29 March 2026: 02:00 becomes 03:00 at 01:00 UTC.
        let after = "2026-03-28T12:00:00Z";
        assert_eq!(
            firings("30 2 * * *", "Europe/Berlin", after),
            ["03-29 01:00:00", "03-30 00:30:00", "03-31 00:30:00"]
        );
        let after = "2026-03-29T00:50:00Z";
        assert_eq!(
            firings("*/20 2,3 * * *", "Europe/Berlin", after),
            ["03-29 01:00:00", "03-29 01:20:00", "03-29 01:40:00"]
        );
    }

    #[test]
    fn a_firing_in_an_overlap_happens_once() {
        // Berlin, 25 October 2026: 03:00 becomes 02:00 at 01:00 UTC.
        let after = "2026-10-24T12:00:00Z";
        assert_eq!(
            firings("30 2 * * *", "Europe/Berlin", after),
            ["10-25 00:30:00", "10-26 01:30:00", "10-27 01:30:00"]
        );
        let in_second_pass = "2026-10-25T01:10:00Z";
        assert_eq!(
            firings("30 * * * *", "Europe/Berlin", in_second_pass),
            ["10-25 02:30:00", "10-25 03:30:00", "10-25 04:30:00"]
        );
    }

    #[test]
    fn what_w40_excludes_is_refused() {
        for expression in [
            "@daily",
            "0 0 * * MON",
            "0 0 L * *",
            "0 0 * * 5#2",
            "0 0 15W * *",
            "0 0 ? * *",
            "5/10 * * * *",
            "1,,2 * * * *",
            "*/0 * * * *",
            "0 0 * * +1",
        ] {
            assert!(
                refusal(expression).contains("but found"),
                "{expression}: {}",
                refusal(expression)
            );
        }
        assert_eq!(refusal("0 0 * *"), "expected 5 fields, but found 4");
        assert_eq!(refusal("0 0 0 * * *"), "expected 5 fields, but found 6");
        assert_eq!(refusal(""), "expected 5 fields, but found 0");
        assert_eq!(
            refusal("0 0 30 2 *"),
            "expected a date that exists in some year, but none matches: it would never fire"
        );
        assert_eq!(refusal("0 0 29 2 *"), "accepted");
        for expression in [
            "60 * * * *",
            "0 24 * * *",
            "0 0 0 * *",
            "0 0 32 * *",
            "0 0 * 13 *",
            "0 0 * * 8",
            "5-1 * * * *",
        ] {
            assert_ne!(refusal(expression), "accepted", "{expression}");
        }
    }

    #[test]
    fn each_field_has_the_range_and_the_signs_of_the_manual() {
        for expression in [
            "0 0 1 1 0",
            "59 23 31 12 7",
            "0-59 0-23 1-31 1-12 0-7",
            "*/59 */23 */31 */12 */7",
            "1,5-9,10-20/2 0,23 1,31 1,12 0,6",
        ] {
            assert_eq!(refusal(expression), "accepted", "{expression}");
        }
        assert_eq!(
            firings("5,10-30/10 9-10 * * *", "UTC", "2026-03-05T09:05:00Z"),
            ["03-05 09:10:00", "03-05 09:20:00", "03-05 09:30:00"]
        );
    }

    #[test]
    fn an_unknown_time_zone_is_refused() {
        let error = Cron::new("0 0 * * *", "Mars/Olympus").map(|_| ());
        assert_eq!(error, Err(CronInvalid::Timezone("Mars/Olympus".to_owned())));
    }
}
