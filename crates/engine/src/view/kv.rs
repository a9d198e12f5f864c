//! Keys and their values (A40).

use super::page::{Page, Scope, page, prefix};
use crate::ids::{KvKey, Namespace};
use crate::limits::KV_PAGE_KEYS_MAX;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{KeyExpiries, KeyRecord, Keys, encode_prefix, read, visit};
use std::ops::ControlFlow;

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyView {
    /// The key.
    pub key: KvKey,
    /// Its value and version.
    pub record: KeyRecord,
}

/// The value of a key at `now_ms`; `None` when it is absent or has expired.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub fn key(
    reader: &dyn Reader,
    (namespace, key): (&Namespace, &KvKey),
    now_ms: u64,
) -> Result<Option<KeyRecord>, StoreError> {
    let record = read::<Keys>(reader, &(namespace.clone(), key.clone()))?;
    Ok(record.filter(|record| record.is_live(now_ms)))
}

/// The keys of a namespace that begin with `text` and are there at `now_ms`, in order. A page has at
/// most 48 of them, so that it fits a message however large the values are.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub fn keys(
    reader: &dyn Reader,
    (namespace, text): (&Namespace, &str),
    now_ms: u64,
    (after, limit): (Option<&[u8]>, usize),
) -> Result<Page<KeyView>, StoreError> {
    let mut prefix = prefix::<Keys>(namespace);
    prefix.extend_from_slice(text.as_bytes());
    page::<Keys, _>(
        reader,
        &Scope::new(&prefix, after, limit.min(KV_PAGE_KEYS_MAX)),
        |(_, key), record| Ok(record.is_live(now_ms).then_some(KeyView { key, record })),
    )
}

/// Whether keys have expired at `now_ms` and are stored still, so that a sweep is due.
///
/// # Errors
/// [`StoreError`] when the store fails.
pub fn has_expired_keys(reader: &dyn Reader, now_ms: u64) -> Result<bool, StoreError> {
    let mut is_due = false;
    let all = KeyRange::prefix(&encode_prefix::<KeyExpiries>(&()));
    visit::<KeyExpiries>(
        reader,
        &all,
        Order::Ascending,
        |(expires_at_ms, _, _), ()| {
            is_due = expires_at_ms <= now_ms;
            ControlFlow::Break(())
        },
    )?;
    Ok(is_due)
}
