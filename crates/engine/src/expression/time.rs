//! Timestamps and durations. Time zones are UTC and fixed offsets only: others would ask a database that changes.

use super::failure::quoted;
use super::{Failure, Function, Type, Value};
use std::fmt;

const NANOS: i128 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

/// A point in time from the year 1 to the year 9999, to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Since the Unix epoch.
    nanos: i128,
}

/// A length of time of at most 10,000 years, to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    nanos: i128,
}

/// 0001-01-01T00:00:00Z, in seconds since the Unix epoch.
const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z, in seconds since the Unix epoch.
const LAST_SECOND: i64 = 253_402_300_799;
/// The whole seconds of the longest duration.
const SPAN_SECONDS_MAX: i128 = 315_576_000_000;

impl Timestamp {
    /// The time a number of milliseconds after the Unix epoch; the last one there is if that is later.
    #[must_use]
    pub fn from_millis(millis: u64) -> Self {
        let last = i128::from(LAST_SECOND) * NANOS;
        Self {
            nanos: (i128::from(millis) * 1_000_000).min(last),
        }
    }

    /// The milliseconds since the Unix epoch, rounded up.
    pub(crate) fn to_millis(self) -> i64 {
        let millis = -(-self.nanos).div_euclid(1_000_000);
        i64::try_from(millis).expect("a timestamp is within its range")
    }

    pub(super) fn from_seconds(seconds: i64) -> Result<Self, Failure> {
        Self::from_nanos(i128::from(seconds) * NANOS)
    }

    fn from_nanos(nanos: i128) -> Result<Self, Failure> {
        let seconds = nanos.div_euclid(NANOS);
        if (i128::from(FIRST_SECOND)..=i128::from(LAST_SECOND)).contains(&seconds) {
            Ok(Self { nanos })
        } else {
            Err(Failure::out_of_range(Type::Timestamp))
        }
    }

    /// The whole seconds since the Unix epoch, rounded down.
    pub(super) fn seconds(self) -> i64 {
        i64::try_from(self.nanos.div_euclid(NANOS)).expect("a timestamp is within its range")
    }

    /// The nanoseconds after the last whole second.
    fn fraction(self) -> i64 {
        i64::try_from(self.nanos.rem_euclid(NANOS)).expect("a fraction of a second")
    }

    pub(super) fn plus(self, span: Span) -> Result<Self, Failure> {
        Self::from_nanos(self.nanos + span.nanos)
    }

    pub(super) fn since(self, other: Self) -> Result<Span, Failure> {
        Span::from_nanos(self.nanos - other.nanos)
    }

    /// Reads a text as RFC 3339 defines it.
    ///
    /// # Errors
    /// If it is not one, or out of range.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut reader = Reader(text);
        let nanos = reader
            .timestamp()
            .filter(|_| reader.0.is_empty())
            .ok_or_else(|| Failure::not_convertible(text, Type::Timestamp))?;
        Self::from_nanos(nanos)
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339, in UTC, with as many digits after the point as are needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Civil::at(*self, 0);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            time.year, time.month, time.day, time.hour, time.minute, time.second
        )?;
        write_fraction(f, self.fraction())?;
        f.write_str("Z")
    }
}

impl Span {
    /// The length of time of a number of nanoseconds.
    ///
    /// # Errors
    /// If it is longer than 10,000 years.
    pub fn from_nanos(nanos: i128) -> Result<Self, Failure> {
        if nanos.abs() < (SPAN_SECONDS_MAX + 1) * NANOS {
            Ok(Self { nanos })
        } else {
            Err(Failure::out_of_range(Type::Duration))
        }
    }

    pub(super) fn negated(self) -> Self {
        Self { nanos: -self.nanos }
    }

    pub(super) fn plus(self, other: Self) -> Result<Self, Failure> {
        Self::from_nanos(self.nanos + other.nanos)
    }

    /// Reads a text such as `1h30m` or `-1.5s`.
    ///
    /// # Errors
    /// If it is not one, or out of range.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let not_a_duration = || Failure::not_convertible(text, Type::Duration);
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let mut reader = Reader(unsigned);
        let mut nanos: i128 = 0;
        if unsigned.is_empty() {
            return Err(not_a_duration());
        }
        while unsigned != "0" && !reader.0.is_empty() {
            let part = reader.span_part().ok_or_else(not_a_duration)?;
            nanos = nanos.checked_add(part).ok_or_else(not_a_duration)?;
        }
        Self::from_nanos(if is_negative { -nanos } else { nanos })
    }
}

impl fmt::Display for Span {
    /// Seconds, such as `3.5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos < 0 {
            f.write_str("-")?;
        }
        let nanos = self.nanos.abs();
        write!(f, "{}", nanos / NANOS)?;
        write_fraction(
            f,
            i64::try_from(nanos % NANOS).expect("a fraction of a second"),
        )?;
        f.write_str("s")
    }
}

/// Writes a point and the digits of a fraction of a second, without trailing zeros.
fn write_fraction(f: &mut fmt::Formatter<'_>, nanos: i64) -> fmt::Result {
    if nanos == 0 {
        return Ok(());
    }
    let digits = format!("{nanos:09}");
    write!(f, ".{}", digits.trim_end_matches('0'))
}

/// Reads a text from its beginning.
struct Reader<'t>(&'t str);

impl Reader<'_> {
    /// A number with exactly that many digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let digits = self.0.get(..count)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = &self.0[count..];
        digits.parse().ok()
    }

    fn literal(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// All digits at the beginning, as text.
    fn all_digits(&mut self) -> &str {
        let end = self.0.find(|c: char| !c.is_ascii_digit());
        let (digits, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        digits
    }

    /// The digits after a point as billionths, further ones cut off; 0 without a point.
    fn fraction(&mut self) -> Option<i128> {
        if self.literal(".").is_none() {
            return Some(0);
        }
        let digits = self.all_digits();
        if digits.is_empty() {
            return None;
        }
        let kept = &digits[..digits.len().min(9)];
        format!("{kept:0<9}").parse().ok()
    }

    /// The nanoseconds since the Unix epoch of a text as RFC 3339 defines it.
    fn timestamp(&mut self) -> Option<i128> {
        let year = self.digits(4)?;
        self.literal("-")?;
        let month = self.digits(2)?;
        self.literal("-")?;
        let day = self.digits(2)?;
        self.literal("T").or_else(|| self.literal("t"))?;
        let hour = self.digits(2)?;
        self.literal(":")?;
        let minute = self.digits(2)?;
        self.literal(":")?;
        let second = self.digits(2)?;
        let fraction = self.fraction()?;
        let offset = match self.literal("Z").or_else(|| self.literal("z")) {
            Some(()) => 0,
            None => self.offset()?,
        };
        let is_time = (1..=12).contains(&month)
            && (1..=days_of_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60;
        let days = is_time.then(|| days_from_civil(year, month, day))?;
        let seconds = days * DAY_SECONDS + hour * 3_600 + minute * 60 + second - offset;
        Some(i128::from(seconds) * NANOS + fraction)
    }

    /// The seconds of an offset from UTC such as `+01:00`.
    fn offset(&mut self) -> Option<i64> {
        let sign = if self.literal("-").is_some() {
            -1
        } else {
            self.literal("+")?;
            1
        };
        Some(sign * self.hours_and_minutes()?)
    }

    fn hours_and_minutes(&mut self) -> Option<i64> {
        let hours = self.digits(2)?;
        self.literal(":")?;
        let minutes = self.digits(2)?;
        (hours < 24 && minutes < 60).then_some(hours * 3_600 + minutes * 60)
    }

    /// The nanoseconds of a number with its unit.
    fn span_part(&mut self) -> Option<i128> {
        let has_no_whole = self.0.starts_with('.');
        let whole = self.all_digits();
        let whole: i128 = if has_no_whole { 0 } else { whole.parse().ok()? };
        let fraction = self.fraction()?;
        const UNITS: [(&str, i128); 8] = [
            ("ns", 1),
            ("us", 1_000),
            // The sign for micro, and the Greek letter.
            ("\u{b5}s", 1_000),
            ("\u{3bc}s", 1_000),
            ("ms", 1_000_000),
            ("s", NANOS),
            ("m", 60 * NANOS),
            ("h", 3_600 * NANOS),
        ];
        let unit = UNITS
            .iter()
            .find_map(|(name, nanos)| self.literal(name).map(|()| *nanos))?;
        whole
            .checked_mul(unit)?
            .checked_add(fraction * unit / NANOS)
    }
}

/// A date and time of day.
struct Civil {
    year: i64,
    /// From 1.
    month: i64,
    /// From 1.
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// Since the Unix epoch.
    days: i64,
}

impl Civil {
    /// A time, at an offset from UTC in seconds.
    fn at(time: Timestamp, offset: i64) -> Self {
        let seconds = time.seconds() + offset;
        let days = seconds.div_euclid(DAY_SECONDS);
        let of_day = seconds.rem_euclid(DAY_SECONDS);
        let (year, month, day) = civil_from_days(days);
        Self {
            year,
            month,
            day,
            hour: of_day / 3_600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            days,
        }
    }
}

/// The days in 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// 0000-03-01 to the Unix epoch. Years that begin in March end with the leap day.
const EPOCH_DAYS: i64 = 719_468;

/// The days from the Unix epoch to a date.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    year.div_euclid(400) * ERA_DAYS + days - EPOCH_DAYS
}

/// The year, month and day that many days after the Unix epoch.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let of_era = days.rem_euclid(ERA_DAYS);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = days.div_euclid(ERA_DAYS) * 400 + year_of_era;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// `time.getHours()` and the like; with a zone only for timestamps.
pub(super) fn accessor(
    function: Function,
    operand: &Value,
    zone: Option<&Value>,
) -> Result<Value, Failure> {
    let field = match (operand, zone) {
        (Value::Timestamp(time), None) => of_timestamp(function, *time, 0),
        (Value::Timestamp(time), Some(Value::String(zone))) => {
            of_timestamp(function, *time, offset_of(zone)?)
        }
        (Value::Duration(span), None) => of_span(function, *span),
        _ => None,
    };
    field.map(Value::Int).ok_or_else(|| {
        let operands: Vec<Value> = [Some(operand), zone]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        Failure::no_such_overload(function.name(), &operands)
    })
}

fn of_timestamp(function: Function, time: Timestamp, offset: i64) -> Option<i64> {
    let civil = Civil::at(time, offset);
    Some(match function {
        Function::GetDate => civil.day,
        Function::GetDayOfMonth => civil.day - 1,
        // The Unix epoch was a Thursday.
        Function::GetDayOfWeek => (civil.days + 4).rem_euclid(7),
        Function::GetDayOfYear => civil.days - days_from_civil(civil.year, 1, 1),
        Function::GetFullYear => civil.year,
        Function::GetHours => civil.hour,
        Function::GetMilliseconds => time.fraction() / 1_000_000,
        Function::GetMinutes => civil.minute,
        Function::GetMonth => civil.month - 1,
        Function::GetSeconds => civil.second,
        _ => return None,
    })
}

fn of_span(function: Function, span: Span) -> Option<i64> {
    let seconds = i64::try_from(span.nanos / NANOS).expect("a duration is within its range");
    let fraction = i64::try_from(span.nanos % NANOS).expect("a fraction of a second");
    Some(match function {
        Function::GetHours => seconds / 3_600,
        Function::GetMinutes => seconds / 60,
        Function::GetSeconds => seconds,
        Function::GetMilliseconds => fraction / 1_000_000,
        _ => return None,
    })
}

/// The offset from UTC in seconds that a zone names.
fn offset_of(zone: &str) -> Result<i64, Failure> {
    if zone == "UTC" || zone == "Z" {
        return Ok(0);
    }
    let mut reader = Reader(zone);
    let offset = if zone.starts_with(['+', '-']) {
        reader.offset()
    } else {
        reader.hours_and_minutes()
    };
    offset.filter(|_| reader.0.is_empty()).ok_or_else(|| {
        Failure::new(format!(
            "expected the time zone UTC or an offset such as +01:00, but found {}",
            quoted(zone)
        ))
    })
}
