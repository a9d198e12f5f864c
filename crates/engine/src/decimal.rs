//! Exact comparison of JSON numbers. Floats are not used: their rounding would make different numbers equal (design
//! rule 1).

use std::cmp::Ordering;

/// The value of a JSON number: `±0.d₁d₂d₃… × 10^exponent`.
///
/// Invariant: the digits have no leading or trailing zeros; zero has no digits, exponent 0 and no sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    exponent: i64,
    /// ASCII digits.
    digits: Vec<u8>,
}

/// Exponents are clamped to this magnitude, which exceeds the number of digits that any JSON text can have.
const EXPONENT_MAX: i64 = 1 << 48;

impl Decimal {
    /// Parses a JSON number; `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, text),
        };
        let (mantissa, power) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, exponent(power)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = [whole.as_bytes(), fraction.as_bytes()].concat();
        if whole.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let zeros_count = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros_count);
        let kept = digits.iter().rposition(|digit| *digit != b'0');
        digits.truncate(kept.map_or(0, |last| last + 1));
        if digits.is_empty() {
            return Some(Self {
                is_negative: false,
                exponent: 0,
                digits,
            });
        }
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(zeros_count).ok()?;
        Some(Self {
            is_negative,
            exponent: power + point,
            digits,
        })
    }

    /// Bytes that sort like the values. Only the first `digits_max` digits are encoded, so different values may have
    /// equal bytes.
    pub(crate) fn ordered_bytes(&self, digits_max: usize) -> Vec<u8> {
        if self.digits.is_empty() {
            return vec![ZERO];
        }
        let biased = self.exponent.cast_unsigned() ^ (1 << 63);
        let mut bytes = biased.to_be_bytes().to_vec();
        bytes.extend(self.digits.iter().take(digits_max));
        if !self.is_negative {
            bytes.insert(0, POSITIVE);
            return bytes;
        }
        // For negative numbers, larger magnitudes sort first, and the terminator sorts after every digit.
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
        bytes.insert(0, NEGATIVE);
        bytes.push(u8::MAX);
        bytes
    }

    fn magnitude(&self) -> (bool, i64, &[u8]) {
        (!self.digits.is_empty(), self.exponent, &self.digits)
    }
}

const NEGATIVE: u8 = 1;
const ZERO: u8 = 2;
const POSITIVE: u8 = 3;

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.magnitude().cmp(&other.magnitude()),
            (true, true) => other.magnitude().cmp(&self.magnitude()),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The number after an `e`, clamped to `EXPONENT_MAX`.
fn exponent(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = digits.parse().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX);
    Some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).expect("a number")
    }

    /// Ascending; the texts of one row are equal.
    const ASCENDING: [&[&str]; 12] = [
        &["-1e400"],
        &["-51"],
        &["-5", "-5.0", "-0.5e1"],
        &["-0.05"],
        &["0", "-0", "0.00e9"],
        &["1e-400"],
        &["0.1", "1e-1"],
        &["12.49"],
        &["12.5", "12.50", "1250E-2"],
        &["12.51"],
        &["100", "1e2", "1e+02"],
        &["1e99999999999999999999"],
    ];

    #[test]
    fn values_decide_and_not_how_they_are_written() {
        let ranked: Vec<(usize, Decimal)> = (0..)
            .zip(ASCENDING)
            .flat_map(|(rank, texts)| texts.iter().map(move |text| (rank, decimal(text))))
            .collect();
        for (rank, one) in &ranked {
            for (other_rank, other) in &ranked {
                assert_eq!(one.cmp(other), rank.cmp(other_rank), "{one:?} {other:?}");
                let bytes = |decimal: &Decimal| decimal.ordered_bytes(32);
                assert_eq!(bytes(one).cmp(&bytes(other)), rank.cmp(other_rank));
            }
        }
    }

    #[test]
    fn cut_bytes_still_sort_and_only_blur() {
        let (one, other) = (decimal("123.4"), decimal("123.5"));
        assert_eq!(one.ordered_bytes(3), other.ordered_bytes(3));
        assert!(one.ordered_bytes(4) < other.ordered_bytes(4));
    }

    #[test]
    fn other_texts_are_not_numbers() {
        for text in ["", "-", "x", "1e", "1e+", ".5", "--1", "0x1", "1.2.3", "1 "] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
