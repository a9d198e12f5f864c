//! The key-value store: commands on keys (A40).
//!
//! An expired key is invisible immediately; its row is deleted later, in bounded batches.

mod delete;
mod set;
mod sweep;

pub use delete::DeleteKey;
pub use set::{SetCondition, SetKey};
pub use sweep::SweepKeys;

use crate::ids::{KvKey, Namespace};
use crate::quota::QuotaDimension;
use crate::store::StoreError;
use crate::tables::{KeyExpiries, KeyRecord, Keys};
use crate::turn::Turn;
use std::sync::Arc;

/// The record of a key, unless it does not exist or has expired.
fn live(
    turn: &mut Turn<'_, '_>,
    key: &(Namespace, KvKey),
) -> Result<Option<Arc<KeyRecord>>, StoreError> {
    let now_ms = turn.now_ms();
    let record = turn.get::<Keys>(key)?;
    Ok(record.filter(|record| record.is_live(now_ms)))
}

/// Deletes a key's rows, expired or not.
fn remove(turn: &mut Turn<'_, '_>, key: &(Namespace, KvKey)) -> Result<(), StoreError> {
    let Some(record) = turn.get::<Keys>(key)? else {
        return Ok(());
    };
    turn.delete::<Keys>(key);
    count(turn, &key.0, -1, (record.counted_bytes(&key.1), 0));
    if let Some(expires_at_ms) = record.expires_at_ms {
        turn.delete::<KeyExpiries>(&expiry(expires_at_ms, key));
    }
    Ok(())
}

/// Counts keys that are stored or deleted, whose size changes from what it was before, in bytes (X38).
fn count(turn: &mut Turn<'_, '_>, namespace: &Namespace, keys: i64, bytes: (u64, u64)) {
    turn.note_use(namespace, QuotaDimension::KvKeys, keys);
    turn.note_size(namespace, QuotaDimension::KvBytes, bytes);
}

fn expiry(expires_at_ms: u64, (namespace, key): &(Namespace, KvKey)) -> (u64, Namespace, KvKey) {
    (expires_at_ms, namespace.clone(), key.clone())
}
