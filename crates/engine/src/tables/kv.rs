//! The key-value store (A40).

use super::tables;
use crate::bytes::Bytes;
use crate::ids::{KvKey, Namespace};
use serde::{Deserialize, Serialize};

tables! {
    /// By key. Live until they are deleted, or expired and swept.
    48 Keys((Namespace, KvKey)) -> KeyRecord => |key| key.value.len();
    /// Keys by the time in milliseconds at which they expire, with what they count for in bytes. Live as long as the
    /// key's record.
    49 KeyExpiries((u64, Namespace, KvKey)) -> u64;
}

/// A key's value (A40).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The value.
    pub value: Bytes,
    /// The version, from a cluster-wide sequence that advances with every write, so that no earlier value of the key,
    /// even before a deletion, has the same version.
    pub version: u64,
    /// When it expires, in milliseconds.
    pub expires_at_ms: Option<u64>,
    /// When it was written, in milliseconds.
    pub updated_at_ms: u64,
}

impl KeyRecord {
    /// What the record of a key counts for (X37), in bytes.
    #[must_use]
    pub fn counted_bytes(&self, key: &KvKey) -> u64 {
        Self::bytes_of(key, &self.value)
    }

    /// What a key with this value counts for, in bytes.
    pub(crate) fn bytes_of(key: &KvKey, value: &[u8]) -> u64 {
        (key.as_str().len() + value.len()) as u64
    }

    /// Whether the key exists at `now_ms`.
    #[must_use]
    pub fn is_live(&self, now_ms: u64) -> bool {
        self.expires_at_ms
            .is_none_or(|expires_at_ms| now_ms < expires_at_ms)
    }
}
