//! Reads the key-value store (A40).

use super::cluster;
use super::page::{Page, PageRange, Scope, page, prefix};
use crate::ids::{KvKey, Namespace};
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
/// [`StoreError`] if the store fails.
pub fn key(
    reader: &dyn Reader,
    namespace: &Namespace,
    key: &KvKey,
    now_ms: u64,
) -> Result<Option<KeyRecord>, StoreError> {
    let record = read::<Keys>(reader, &(namespace.clone(), key.clone()))?;
    Ok(record.filter(|record| record.is_live(now_ms)))
}

/// Which keys of a namespace a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySelection<'a> {
    /// What the keys begin with.
    pub prefix: &'a str,
    /// The time at which they have not expired, in milliseconds.
    pub now_ms: u64,
}

/// The selected keys of a namespace, in order.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn keys(
    reader: &dyn Reader,
    namespace: &Namespace,
    selection: KeySelection<'_>,
    range: PageRange<'_>,
) -> Result<Page<KeyView>, StoreError> {
    let mut prefix = prefix::<Keys>(namespace);
    prefix.extend_from_slice(selection.prefix.as_bytes());
    page::<Keys, _>(
        reader,
        &Scope::new(&prefix, range),
        |_, (_, key), record| {
            let is_live = record.is_live(selection.now_ms);
            Ok(is_live.then_some(KeyView { key, record }))
        },
    )
}

/// The cursor with which a driver finds expired keys, so that its reads skip the tombstones of deleted rows (design
/// rule 4).
///
/// A key's expiry is never before its entry's time. A range that a read finds empty, up to the log's time, therefore
/// stays empty. A cursor must not outlive the state that it was used with.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyCursor {
    /// No key expires before this time, in milliseconds, and none will.
    from_ms: u64,
}

impl KeyCursor {
    /// When the first stored key expired by the log's time, in milliseconds: where a sweep begins. `None` if no key has
    /// expired.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    pub fn first_expired_ms(&mut self, reader: &dyn Reader) -> Result<Option<u64>, StoreError> {
        let now_ms = cluster(reader)?.now_ms;
        let mut first_ms = None;
        let past = KeyRange {
            from: encode_prefix::<KeyExpiries>(&self.from_ms),
            to: encode_prefix::<KeyExpiries>(&now_ms.saturating_add(1)),
        };
        visit::<KeyExpiries>(reader, &past, Order::Ascending, |(expires_at_ms, ..), _| {
            first_ms = Some(expires_at_ms);
            ControlFlow::Break(())
        })?;
        self.from_ms = first_ms.unwrap_or(now_ms);
        Ok(first_ms)
    }
}
