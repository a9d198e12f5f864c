//! Writing a value (A40).

use super::{count, expiry, live, remove};
use crate::bytes::Bytes;
use crate::ids::{KvKey, Namespace};
use crate::limits::KV_VALUE_BYTES_MAX;
use crate::quota::{self, QuotaDimension};
use crate::rejection::{Rejection, check_bytes};
use crate::reply::KeySet;
use crate::tables::{KeyExpiries, KeyRecord, Keys};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// Writes a value, replacing the key's value and its time to live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetKey {
    /// The key.
    pub key: KvKey,
    /// The value, at most 64 KiB.
    pub value: Bytes,
    /// How long it lives, in milliseconds; `None` is for ever.
    pub ttl_ms: Option<NonZeroU64>,
    /// The precondition of the write.
    pub condition: SetCondition,
}

/// A precondition on the key's current state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetCondition {
    /// The write has no precondition.
    Always,
    /// The key does not exist.
    IfAbsent,
    /// The key has this version (compare-and-set).
    IfVersion(u64),
}

impl SetKey {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<KeySet> {
        check_bytes("the value", self.value.len(), KV_VALUE_BYTES_MAX)?;
        let key = (namespace.clone(), self.key.clone());
        self.check_quota(turn, &key)?;
        let found = live(turn, &key)?.map(|record| record.version);
        self.check(found)?;
        remove(turn, &key)?;
        let version = turn.next_number(|cluster| &mut cluster.key_versions_count);
        let updated_at_ms = turn.now_ms();
        let expires_at_ms = self
            .ttl_ms
            .map(|ttl_ms| updated_at_ms.saturating_add(ttl_ms.get()));
        let record = KeyRecord {
            value: self.value.clone(),
            version,
            expires_at_ms,
            updated_at_ms,
        };
        let bytes = record.counted_bytes(&self.key);
        if let Some(expires_at_ms) = expires_at_ms {
            turn.put::<KeyExpiries>(&expiry(expires_at_ms, &key), bytes);
        }
        turn.put::<Keys>(&key, record);
        count(turn, namespace, 1, (0, bytes));
        Ok(KeySet { version })
    }

    /// Checks that the quotas allow what the write adds to the row of the key, which may have expired.
    fn check_quota(&self, turn: &mut Turn<'_, '_>, key: &(Namespace, KvKey)) -> TurnResult<()> {
        let before = turn.get::<Keys>(key)?;
        let bytes_before = before
            .as_ref()
            .map_or(0, |record| record.counted_bytes(&key.1));
        let bytes = KeyRecord::bytes_of(&key.1, &self.value);
        let needs = [
            (QuotaDimension::KvKeys, u64::from(before.is_none())),
            (QuotaDimension::KvBytes, bytes.saturating_sub(bytes_before)),
            (QuotaDimension::PayloadBytes, self.value.len() as u64),
        ];
        quota::check(turn, &key.0, &needs)
    }

    fn check(&self, found: Option<u64>) -> Result<(), Rejection> {
        match (self.condition, found) {
            (SetCondition::Always, _) | (SetCondition::IfAbsent, None) => Ok(()),
            (SetCondition::IfVersion(expected), Some(found)) if expected == found => Ok(()),
            (SetCondition::IfAbsent, Some(version)) => Err(Rejection::KeyExists {
                key: self.key.clone(),
                version,
            }),
            (SetCondition::IfVersion(expected), found) => Err(Rejection::KeyVersionMismatch {
                key: self.key.clone(),
                expected,
                found,
            }),
        }
    }
}
