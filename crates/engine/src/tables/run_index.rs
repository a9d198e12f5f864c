//! The search indexes of runs (W22). They are updated at the end of each turn that changed a run (design rule 4).

use super::{AttributeValue, Key, RunStatus, tables};
use crate::decimal::Decimal;
use crate::ids::{AttributeName, Namespace, RunNumber, WorkflowName};
use crate::limits::ATTRIBUTE_KEY_BYTES_MAX;

tables! {
    /// Runs by workflow. Live as long as the run.
    39 RunsByWorkflow((Namespace, WorkflowName, RunNumber)) -> ();
    /// Runs by status. Live as long as the run.
    40 RunsByStatus((Namespace, RunStatus, RunNumber)) -> ();
    /// Ended runs by when they ended, in milliseconds. Live as long as the run.
    41 RunsByCompletion((Namespace, u64, RunNumber)) -> ();
    /// Runs by their search attributes. Live as long as the run has the value.
    42 RunsByAttribute((Namespace, AttributeName, AttributeKey, RunNumber)) -> ();
}

/// A search attribute's value as ordered bytes, truncated if long. Different values may have equal keys, so the run's
/// own record decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeKey(Vec<u8>);

impl AttributeKey {
    /// The key of a value. Values of different types are never equal.
    #[must_use]
    pub fn new(value: &AttributeValue) -> Self {
        let (tag, mut bytes) = match value {
            AttributeValue::String(text) => {
                let end = text.floor_char_boundary(ATTRIBUTE_KEY_BYTES_MAX);
                (STRING, text.as_bytes()[..end].to_vec())
            }
            AttributeValue::Number(number) => {
                let decimal = Decimal::parse(number.as_str());
                let bytes = decimal.map(|decimal| decimal.ordered_bytes(ATTRIBUTE_KEY_BYTES_MAX));
                (NUMBER, bytes.unwrap_or_default())
            }
            AttributeValue::Timestamp(at_ms) => {
                let biased = at_ms.cast_unsigned() ^ (1 << 63);
                (TIMESTAMP, biased.to_be_bytes().to_vec())
            }
        };
        bytes.insert(0, tag);
        Self(bytes)
    }

    /// The least and the greatest key that a value of the same type can have.
    #[must_use]
    pub fn range(value: &AttributeValue) -> (Self, Self) {
        let tag = match value {
            AttributeValue::String(_) => STRING,
            AttributeValue::Number(_) => NUMBER,
            AttributeValue::Timestamp(_) => TIMESTAMP,
        };
        (Self(vec![tag]), Self(vec![tag + 1]))
    }
}

const STRING: u8 = 1;
const NUMBER: u8 = 2;
const TIMESTAMP: u8 = 3;

/// A zero byte in a key's bytes is followed by this; the end is two zero bytes, which sort before.
const ESCAPED: u8 = 0xff;

impl Key for AttributeKey {
    fn encode(&self, out: &mut Vec<u8>) {
        for byte in &self.0 {
            out.push(*byte);
            if *byte == 0 {
                out.push(ESCAPED);
            }
        }
        out.extend_from_slice(&[0, 0]);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut found = Vec::new();
        loop {
            match u8::decode(bytes)? {
                0 => match u8::decode(bytes)? {
                    ESCAPED => found.push(0),
                    0 => return Some(Self(found)),
                    _ => return None,
                },
                byte => found.push(byte),
            }
        }
    }
}

impl Key for RunStatus {
    fn encode(&self, out: &mut Vec<u8>) {
        let position = Self::ALL.iter().position(|status| status == self);
        let position = position.expect("all statuses are listed");
        u8::try_from(position + 1)
            .expect("there are few statuses")
            .encode(out);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let position = u8::decode(bytes)?.checked_sub(1)?;
        Self::ALL.get(usize::from(position)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_survives_its_key_and_nothing_else_is_one() {
        let key = AttributeKey::new(&AttributeValue::String("a\0b".to_owned()));
        let mut bytes = Vec::new();
        key.encode(&mut bytes);
        assert_eq!(bytes.as_slice(), b"\x01a\0\xffb\0\0");
        assert_eq!(AttributeKey::decode(&mut bytes.as_slice()), Some(key));
        for bytes in [
            &b""[..],
            b"\x01a",
            b"\x01a\0",
            b"\x01a\0\x05",
            b"\x01a\0\x01\0\0",
        ] {
            let mut rest = bytes;
            assert_eq!(AttributeKey::decode(&mut rest), None, "{bytes:02x?}");
        }
    }
}
