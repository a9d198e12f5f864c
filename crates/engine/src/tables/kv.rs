//! Keys and values that actions and callers keep (A40).

use super::tables;
use crate::bytes::Bytes;
use crate::ids::{KvKey, Namespace};
use serde::{Deserialize, Serialize};

tables! {
    /// By key. Live until they are deleted, or expired and swept.
    48 Keys((Namespace, KvKey)) -> KeyRecord;
    /// Keys by the time in milliseconds at which they expire. Live as long as the key's record.
    49 KeyExpiries((u64, Namespace, KvKey)) -> ();
}

/// A key's value (A40).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The value.
    pub value: Bytes,
    /// Drawn from one sequence of the cluster with each write, so that no value of the key, not even
    /// one before a deletion, has had it.
    pub version: u64,
    /// From when on nobody sees it, in milliseconds.
    pub expires_at_ms: Option<u64>,
    /// When it was written, in milliseconds.
    pub updated_at_ms: u64,
}

impl KeyRecord {
    /// Whether the key is there at `now_ms`.
    #[must_use]
    pub fn is_live(&self, now_ms: u64) -> bool {
        self.expires_at_ms
            .is_none_or(|expires_at_ms| now_ms < expires_at_ms)
    }
}
