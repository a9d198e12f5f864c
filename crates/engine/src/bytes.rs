//! Opaque caller bytes, which the engine stores and never interprets.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Caller-supplied bytes: the value of a key (A40) or the payload of a stream record (A30). Cheap to clone. Encoded as
/// one block; a `Vec<u8>` would be encoded byte by byte.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bytes(Arc<[u8]>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(Block)
    }
}

/// Reads a block of bytes from a deserializer.
struct Block;

impl de::Visitor<'_> for Block {
    type Value = Bytes;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("bytes")
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes(bytes.into()))
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    #[test]
    fn bytes_are_encoded_as_their_length_and_themselves() {
        let bytes = Bytes::from(vec![0, 255, 7]);
        let encoded = codec::encode(&bytes);
        assert_eq!(encoded[1..], [3, 0, 255, 7]);
        assert_eq!(codec::decode::<Bytes>(&encoded).expect("encoded"), bytes);
        assert!(codec::decode::<Bytes>(&encoded[..3]).is_err());
        assert_eq!(format!("{bytes:?}"), r#""\x00\xff\x07""#);
    }
}
