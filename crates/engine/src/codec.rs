//! The storage encoding: a format tag, followed by bincode (design rule 12).
//!
//! The encoded values are enums of versions (`V1(…)`), so a released variant is never edited. The tag allows the
//! encoding itself to change.

use crate::limits::ENTRY_BYTES_MAX;
use bincode::enc::write::{SizeWriter, Writer};
use bincode::error::EncodeError;
use serde::{Serialize, de::DeserializeOwned};
use xxhash_rust::xxh3::xxh3_64;

/// The tag of the only format so far: bincode 2, its `standard` configuration.
const FORMAT_BINCODE: u8 = 1;

/// The initial buffer capacity. Most records fit, so the buffer rarely grows. In bytes.
const BYTES_COMMON: usize = 256;

/// The decoder's allocation limit. Without it, a damaged length would make the decoder allocate that much. A number
/// counts with its in-memory size, which is up to 16 times its encoded size.
const ACCOUNTED_BYTES_MAX: usize = 256 << 20;
const _: () = assert!(ACCOUNTED_BYTES_MAX >= 2 * 16 * ENTRY_BYTES_MAX);

/// Why bytes could not be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The input is empty.
    #[error("expected a format tag, but the record is empty")]
    Empty,
    /// The format tag is unknown to this version.
    #[error("expected format {FORMAT_BINCODE}, but found {0}: written by a newer version?")]
    FormatUnknown(u8),
    /// The bytes after the tag do not match the type.
    #[error("expected a record of this version, but {0}")]
    Malformed(#[from] bincode::error::DecodeError),
    /// The input continues after the end of the value.
    #[error("expected the record to end after {expected} bytes, but it has {found}")]
    TooLong {
        /// The length of the decoded value.
        expected: usize,
        /// The length of the input.
        found: usize,
    },
}

/// Encodes a value, preceded by the format tag.
///
/// # Panics
/// Never for the engine's own types: they contain nothing that serde's bincode format cannot encode.
#[must_use]
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BYTES_COMMON);
    encode_into(value, &mut bytes);
    bytes
}

/// Appends the output of [`encode`].
///
/// # Panics
/// Like [`encode`].
pub(crate) fn encode_into<T: Serialize>(value: &T, bytes: &mut Vec<u8>) {
    bytes.push(FORMAT_BINCODE);
    bincode::serde::encode_into_writer(value, Appending(bytes), bincode::config::standard())
        .expect("our types hold only what bincode encodes, and a Vec takes every byte");
}

/// The length of the output of [`encode`] without its tag. In bytes.
///
/// # Panics
/// Like [`encode`].
#[must_use]
pub(crate) fn encoded_bytes<T: Serialize>(value: &T) -> u64 {
    let mut size = SizeWriter::default();
    bincode::serde::encode_into_writer(value, &mut size, bincode::config::standard())
        .expect("our types hold only what bincode encodes, and counting cannot fail");
    size.bytes_written as u64
}

/// A bincode writer that appends to a vector. Most output comes byte by byte, so single bytes have a fast path.
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

/// Decodes the output of [`encode`].
///
/// # Errors
/// [`DecodeError`] if the bytes have another format or do not match the type.
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

/// A 64-bit fingerprint (XXH3, ADR 0027) that distinguishes a repeated request from a different one that reuses its id.
///
/// Not collision-resistant against adversaries; it only has to be the same in every build.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
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

    /// The values are those of the reference implementation: records of every build refer to fingerprints.
    #[test]
    fn a_fingerprint_is_xxh3() {
        assert_eq!(fingerprint(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(fingerprint(b"abc"), 0x78af_5f94_892f_3950);
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
