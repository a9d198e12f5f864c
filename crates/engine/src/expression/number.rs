//! Numbers: reading, writing, arithmetic and comparison (W64).
//!
//! `f64` is allowed here alone (design rule 1). Addition, subtraction, multiplication, division and comparison of finite
//! doubles are exact functions of their operands in IEEE 754, on every machine. The standard library reads numbers
//! correctly rounded and gives the shortest digits that read back as the same number.
#![allow(
    clippy::disallowed_types,
    clippy::float_arithmetic,
    clippy::float_cmp,
    reason = "the results are defined by IEEE 754"
)]

use super::{Failure, Type, Value};
use std::cmp::Ordering;
use std::fmt;

/// A floating-point number. Invariant: finite.
#[derive(Clone, Copy, Debug)]
pub struct Double(f64);

/// The smallest int, -2⁶³.
const INT_MIN: f64 = -9_223_372_036_854_775_808.0;

impl Double {
    /// A number, unless it is infinite or not a number.
    #[must_use]
    pub fn new(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(number))
    }

    /// The bits of the number, which a compiled expression stores.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// The number with these bits.
    pub(super) fn from_bits(bits: u64) -> Self {
        Self(f64::from_bits(bits))
    }

    /// The double nearest to an int.
    #[allow(
        clippy::cast_precision_loss,
        reason = "rounding to the nearest is meant"
    )]
    pub(super) fn from_int(int: i64) -> Self {
        Self(int as f64)
    }

    /// The double nearest to a uint.
    #[allow(
        clippy::cast_precision_loss,
        reason = "rounding to the nearest is meant"
    )]
    pub(super) fn from_uint(uint: u64) -> Self {
        Self(uint as f64)
    }

    pub(super) fn negated(self) -> Self {
        Self(-self.0)
    }

    /// The whole part; `None` outside the range of ints.
    pub(super) fn to_int(self) -> Option<i64> {
        // The bounds are excluded, because a number near them may have been rounded to them.
        let in_range = self.0 > INT_MIN && self.0 < -INT_MIN;
        #[allow(clippy::cast_possible_truncation, reason = "the range was checked")]
        in_range.then_some(self.0 as i64)
    }

    /// The whole part; `None` outside the range of uints.
    pub(super) fn to_uint(self) -> Option<u64> {
        let in_range = self.0 >= 0.0 && self.0 < -INT_MIN * 2.0;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked"
        )]
        in_range.then_some(self.0 as u64)
    }

    /// The whole number that it is, if it is one that an int or a uint can be.
    pub(super) fn to_whole(self) -> Option<i128> {
        let in_range = self.0 >= INT_MIN && self.0 < -INT_MIN * 2.0;
        #[allow(clippy::cast_possible_truncation, reason = "the range was checked")]
        (in_range && self.0 == self.0.trunc()).then_some(self.0 as i128)
    }

    /// The order of the number and an integer, without rounding either.
    fn cmp_integer(self, integer: i128) -> Ordering {
        // An integer of 64 bits is far within the range to which the cast saturates.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a saturating cast is meant"
        )]
        let whole = self.0 as i128;
        let fraction = self.0 - self.0.trunc();
        whole
            .cmp(&integer)
            .then(fraction.partial_cmp(&0.0).unwrap_or(Ordering::Equal))
    }
}

/// From this power of ten on, and below [`EXPONENT_MIN`], numbers are written with an exponent.
const EXPONENT_MAX: i32 = 16;
const EXPONENT_MIN: i32 = -5;

impl fmt::Display for Double {
    /// The shortest text that reads back as the same number, always with a point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The standard library gives the digits; where the point and the exponent stand is decided here.
        let scientific = format!("{:e}", self.0.abs());
        let (mantissa, exponent) = scientific.split_once('e').expect("an exponent");
        let exponent: i32 = exponent.parse().expect("a number");
        let digits = mantissa.replace('.', "");
        if self.0.is_sign_negative() {
            f.write_str("-")?;
        }
        if !(EXPONENT_MIN..EXPONENT_MAX).contains(&exponent) {
            let fraction = if digits.len() == 1 { "0" } else { &digits[1..] };
            return write!(f, "{}.{fraction}e{exponent}", &digits[..1]);
        }
        let Ok(point) = usize::try_from(exponent + 1) else {
            let zeros = "0".repeat((-exponent - 1).unsigned_abs() as usize);
            return write!(f, "0.{zeros}{digits}");
        };
        if point == 0 {
            return write!(f, "0.{digits}");
        }
        let digits = format!("{digits:0<point$}");
        let (whole, fraction) = digits.split_at(point);
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        write!(f, "{whole}.{fraction}")
    }
}

/// Reads a JSON number: an integer within the range of ints is an int, every other number a double.
pub(super) fn read(text: &str) -> Result<Value, Failure> {
    let is_integer = !text.contains(['.', 'e', 'E']);
    if is_integer && let Ok(int) = text.parse() {
        return Ok(Value::Int(int));
    }
    let double = text.parse().map_err(|_| not_a_double(text))?;
    finite(double)
}

/// Reads the text of a double.
pub(super) fn read_double(text: &str) -> Result<Value, Failure> {
    let is_number = text.ends_with(|last: char| last.is_ascii_digit() || last == '.');
    match text.parse() {
        Ok(double) if is_number => finite(double),
        Ok(_) | Err(_) => Err(not_a_double(text)),
    }
}

fn not_a_double(text: &str) -> Failure {
    Failure::not_convertible(text, Type::Double)
}

/// An arithmetic operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// Makes the function for two integers of a type.
macro_rules! integers {
    ($(#[$doc:meta])* $function:ident, $integer:ty, $variant:ident) => {
        $(#[$doc])*
        pub(super) fn $function(
            operation: Arithmetic,
            one: $integer,
            other: $integer,
        ) -> Result<Value, Failure> {
            let result = match operation {
                Arithmetic::Add => one.checked_add(other),
                Arithmetic::Subtract => one.checked_sub(other),
                Arithmetic::Multiply => one.checked_mul(other),
                Arithmetic::Divide if other == 0 => return Err(division_by_zero()),
                Arithmetic::Divide => one.checked_div(other),
            };
            let result = result.ok_or_else(|| Failure::out_of_range(Type::$variant))?;
            Ok(Value::$variant(result))
        }
    };
}

integers! {
    /// The result for two ints.
    ints, i64, Int
}
integers! {
    /// The result for two uints.
    uints, u64, Uint
}

/// The result for two doubles.
pub(super) fn doubles(
    operation: Arithmetic,
    Double(one): Double,
    Double(other): Double,
) -> Result<Value, Failure> {
    finite(match operation {
        Arithmetic::Add => one + other,
        Arithmetic::Subtract => one - other,
        Arithmetic::Multiply => one * other,
        Arithmetic::Divide if other == 0.0 => return Err(division_by_zero()),
        Arithmetic::Divide => one / other,
    })
}

fn division_by_zero() -> Failure {
    Failure::new("division by zero")
}

/// A double, unless it is infinite or not a number.
fn finite(double: f64) -> Result<Value, Failure> {
    let double = Double::new(double).ok_or_else(|| Failure::out_of_range(Type::Double))?;
    Ok(Value::Double(double))
}

/// The order of two numbers by value, whatever their types; `None` for other values.
pub(super) fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    use Value::{Double, Int, Uint};
    match (one, other) {
        (Int(one), Int(other)) => Some(one.cmp(other)),
        (Uint(one), Uint(other)) => Some(one.cmp(other)),
        (Double(one), Double(other)) => one.0.partial_cmp(&other.0),
        (Int(one), Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Uint(one), Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
        (Double(one), Int(other)) => Some(one.cmp_integer(i128::from(*other))),
        (Double(one), Uint(other)) => Some(one.cmp_integer(i128::from(*other))),
        (Int(one), Double(other)) => Some(other.cmp_integer(i128::from(*one)).reverse()),
        (Uint(one), Double(other)) => Some(other.cmp_integer(i128::from(*one)).reverse()),
        _ => None,
    }
}
