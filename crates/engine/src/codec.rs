//! The persisted encoding: a format tag, then bincode (design rule 12).
//!
//! What is encoded are enums of versions (`V1(…)`), so a released variant is never edited; the tag
//! leaves room to change the encoding itself.

use crate::limits::ENTRY_BYTES_MAX;
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use serde::{Serialize, de::DeserializeOwned};

/// The tag of the only format so far: bincode 2, its `standard` configuration.
const FORMAT_BINCODE: u8 = 1;

/// Most records take no more: room for so much spares growing step by step. In bytes.
const BYTES_COMMON: usize = 256;

/// What decoding may account for: without a bound, room is made for whatever length a damaged record
/// says. A number counts with its full size, which is up to 16 times what it takes as a record.
const ACCOUNTED_BYTES_MAX: usize = 256 << 20;
const _: () = assert!(ACCOUNTED_BYTES_MAX >= 2 * 16 * ENTRY_BYTES_MAX);

/// Bytes that cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// No bytes at all.
    #[error("expected a format tag, but the record is empty")]
    Empty,
    /// A tag that this version does not know.
    #[error("expected format {FORMAT_BINCODE}, but found {0}: written by a newer version?")]
    FormatUnknown(u8),
    /// The rest does not fit the type.
    #[error("expected a record of this version, but {0}")]
    Malformed(#[from] bincode::error::DecodeError),
    /// Bytes are left over.
    #[error("expected the record to end after {expected} bytes, but it has {found}")]
    TooLong {
        /// Where decoding ended.
        expected: usize,
        /// The length of the record.
        found: usize,
    },
}

/// Encodes a value behind the format tag.
///
/// # Panics
/// Never for our own types: they hold nothing that serde's bincode form refuses.
#[must_use]
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES_COMMON);
    encode_into(value, &mut bytes);
    bytes
}

/// Appends what [`encode`] makes.
///
/// # Panics
/// As [`encode`].
pub(crate) fn encode_into<T: Serialize>(value: &T, bytes: &mut Vec<u8>) {
    bytes.push(FORMAT_BINCODE);
    bincode::serde::encode_into_writer(value, Appending(bytes), bincode::config::standard())
        .expect("our types hold only what bincode encodes, and a Vec takes every byte");
}

/// Takes what is encoded. Most of it comes byte by byte, which is worth a way of its own.
struct Appending<'a>(&'a mut Vec<u8>);

impl Writer for Appending<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        match bytes {
            [byte] => self.0.push(*byte),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }
}

/// Decodes what [`encode`] wrote.
///
/// # Errors
/// [`DecodeError`] for bytes of another format or shape.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let (tag, body) = bytes.split_first().ok_or(DecodeError::Empty)?;
    if *tag != FORMAT_BINCODE {
        return Err(DecodeError::FormatUnknown(*tag));
    }
    let config = bincode::config::standard().with_limit::<ACCOUNTED_BYTES_MAX>();
    let (value, read) = bincode::serde::decode_from_slice(body, config)?;
    if read != body.len() {
        return Err(DecodeError::TooLong {
            expected: read + 1,
            found: bytes.len(),
        });
    }
    Ok(value)
}

/// A 64-bit fingerprint of bytes (FNV-1a): tells a repeated request from one that reuses its id.
///
/// Not for adversaries; it only has to be the same in every build.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Bytes;

    #[test]
    fn a_value_survives_the_round_trip() {
        let value = (7_u64, "text".to_owned(), vec![1_u8, 2, 3]);
        let decoded: (u64, String, Vec<u8>) = decode(&encode(&value)).expect("just encoded");
        assert_eq!(decoded, value);
    }

    #[test]
    fn foreign_short_and_long_bytes_are_refused() {
        assert!(matches!(decode::<u64>(&[]), Err(DecodeError::Empty)));
        assert!(matches!(
            decode::<u64>(&[9, 1]),
            Err(DecodeError::FormatUnknown(9))
        ));
        assert!(matches!(
            decode::<u64>(&[1]),
            Err(DecodeError::Malformed(_))
        ));
        assert!(matches!(
            decode::<u64>(&[1, 1, 1]),
            Err(DecodeError::TooLong { .. })
        ));
    }

    #[test]
    fn a_length_that_no_record_has_is_refused_before_room_is_made_for_it() {
        for length in [u64::MAX, 1 << 62, 1 << 40] {
            let bytes = encode(&length);
            assert!(decode::<String>(&bytes).is_err(), "{length}");
            assert!(decode::<Bytes>(&bytes).is_err(), "{length}");
            assert!(decode::<Vec<u64>>(&bytes).is_err(), "{length}");
        }
    }
}
