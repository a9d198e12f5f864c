//! Record ids and positions in a stream (A30).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A record id, `<ms>-<seq>`: the time in milliseconds and a sequence number within it. The ids of a stream increase
/// with every record, across all its partitions.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RecordId {
    /// When the record was appended, in milliseconds; never less than the previous record's time.
    pub ms: u64,
    /// From 0 for each time; from 1 at time 0, because `0-0` is not a record.
    pub seq: u64,
}

/// A position in a stream as text: an id, or `$` for the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamPosition {
    /// At the record with this id, or at the first record after it. `0-0` is the start.
    Id(RecordId),
    /// After the current last record.
    Tail,
}

/// A text that is not a position in a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a record id `<ms>-<seq>`, but it is {0:?}")]
pub struct RecordIdInvalid(pub String);

impl RecordId {
    /// `0-0`: before every record.
    pub const START: Self = Self { ms: 0, seq: 0 };
    /// After every record.
    pub const END: Self = Self {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// The next possible id.
    #[must_use]
    pub fn next(self) -> Self {
        match self.seq.checked_add(1) {
            Some(seq) => Self { seq, ..self },
            None => Self {
                ms: self.ms.saturating_add(1),
                seq: 0,
            },
        }
    }

    /// The id of a record that is appended at `now_ms` after this one.
    #[must_use]
    pub(super) fn following(self, now_ms: u64) -> Self {
        if now_ms > self.ms {
            return Self { ms: now_ms, seq: 0 };
        }
        self.next()
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.ms, self.seq)
    }
}

impl FromStr for RecordId {
    type Err = RecordIdInvalid;

    fn from_str(text: &str) -> Result<Self, RecordIdInvalid> {
        let invalid = || RecordIdInvalid(text.chars().take(64).collect());
        let (ms, seq) = text.split_once('-').ok_or_else(invalid)?;
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_plain)
        };
        let ms = number(ms).ok_or_else(invalid)?;
        let seq = number(seq).ok_or_else(invalid)?;
        Ok(Self { ms, seq })
    }
}

impl FromStr for StreamPosition {
    type Err = RecordIdInvalid;

    fn from_str(text: &str) -> Result<Self, RecordIdInvalid> {
        if text == "$" {
            return Ok(Self::Tail);
        }
        text.parse().map(Self::Id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn id(ms: u64, seq: u64) -> RecordId {
        RecordId { ms, seq }
    }

    #[test]
    fn ids_grow_even_where_the_clock_does_not() {
        assert_eq!(RecordId::START.following(0), id(0, 1));
        assert_eq!(RecordId::START.following(7), id(7, 0));
        assert_eq!(id(7, 0).following(7), id(7, 1));
        assert_eq!(id(7, 3).following(6), id(7, 4));
        assert_eq!(id(7, 3).following(8), id(8, 0));
        assert_eq!(id(7, u64::MAX).next(), id(8, 0));
    }

    #[test]
    fn an_id_survives_its_text_and_nothing_else_parses() {
        assert_eq!(id(1_000, 7).to_string(), "1000-7");
        assert_eq!("1000-7".parse(), Ok(id(1_000, 7)));
        assert_eq!("0-0".parse(), Ok(StreamPosition::Id(RecordId::START)));
        assert_eq!("$".parse(), Ok(StreamPosition::Tail));
        for text in ["", "-", "7", "7-", "-7", "+7-1", "7-1-1", "7-x", "$1"] {
            assert!(text.parse::<StreamPosition>().is_err(), "{text}");
        }
    }
}
