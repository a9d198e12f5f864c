//! An LRU cache of decoded hot records (design rule 4).

use crate::limits::{CACHE_BYTES_MAX, CACHE_RECORDS_MAX};
use crate::overlay::{AnyRecord, Cell, downcast};
use crate::tables::{KeyBytes, Table};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The most recently used hot records. The cache changes only with what is stored or about to be stored, so it never
/// changes a result. Bounded in count and in bytes.
pub(crate) struct Cache {
    records: LruCache<KeyBytes, Kept>,
    /// The total size of the encoded records.
    bytes: usize,
    bytes_max: usize,
}

struct Kept {
    /// `None` if the store has no record at the key: looking it up again would cost as much as reading a record.
    record: Option<AnyRecord>,
    /// The encoded size, keys included; the decoded record takes a few times as much.
    bytes: usize,
}

impl Cache {
    pub(crate) fn new() -> Self {
        Self::bounded(CACHE_RECORDS_MAX, CACHE_BYTES_MAX)
    }

    fn bounded(records_max: NonZeroUsize, bytes_max: usize) -> Self {
        Self {
            // The table grows with the records, so that it stays small enough for the caches of the processor.
            records: LruCache::sparse(records_max),
            bytes: 0,
            bytes_max,
        }
    }

    /// The cached entry for `key`: a record, or `None` if the store has no record there.
    pub(crate) fn get<T: Table>(&mut self, key: &[u8]) -> Option<Option<Arc<T::Record>>> {
        if !T::IS_HOT {
            return None;
        }
        let kept = self.records.get(key)?;
        Some(kept.record.clone().map(downcast::<T>))
    }

    /// Takes the record at `key` out, if it is cached. It may be cached again when it is read or written.
    pub(crate) fn take<T: Table>(&mut self, key: &[u8]) -> Option<Arc<T::Record>> {
        if !T::IS_HOT {
            return None;
        }
        let kept = self.remove(key)?;
        if kept.record.is_none() {
            self.put(KeyBytes::from_slice(key), None, 0);
        }
        kept.record.map(downcast::<T>)
    }

    /// Caches the result of a read: a record with its encoded size `bytes`, or `None` if the store has no record.
    pub(crate) fn keep<T: Table>(
        &mut self,
        key: &[u8],
        record: Option<&Arc<T::Record>>,
        bytes: usize,
    ) {
        if T::IS_HOT && record.is_none_or(|record| T::is_worked_on(record)) {
            let record = record.map(|record| record.clone() as AnyRecord);
            self.put(KeyBytes::from_slice(key), record, bytes);
        }
    }

    /// Updates the cache after a write of `bytes` encoded bytes.
    pub(crate) fn follow(&mut self, key: &KeyBytes, cell: &Cell, bytes: usize) {
        if !cell.is_hot() {
            return;
        }
        if cell.is_worked_on() {
            let key = KeyBytes::from_slice(key);
            self.put(key, Some(cell.any_record()), bytes);
        } else {
            self.forget(key);
        }
    }

    /// Updates the cache after a deletion.
    pub(crate) fn forget(&mut self, key: &[u8]) {
        self.remove(key);
    }

    fn remove(&mut self, key: &[u8]) -> Option<Kept> {
        let kept = self.records.pop(key)?;
        self.bytes -= kept.bytes;
        Some(kept)
    }

    fn put(&mut self, key: KeyBytes, record: Option<AnyRecord>, bytes: usize) {
        let bytes = bytes + key.len();
        self.bytes += bytes;
        let pushed_out = self.records.push(key, Kept { record, bytes });
        self.bytes -= pushed_out.map_or(0, |(_, kept)| kept.bytes);
        while self.bytes > self.bytes_max
            && let Some((_, oldest)) = self.records.pop_lru()
        {
            self.bytes -= oldest.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Namespace;
    use crate::tables::{Workflows, row_key};

    fn key(name: &str) -> KeyBytes {
        let name = crate::ids::WorkflowName::new(name).expect("a name");
        row_key::<Workflows>(&(Namespace::default_namespace(), name), &mut Vec::new())
            .bytes()
            .clone()
    }

    fn record() -> Arc<crate::tables::WorkflowRecord> {
        Arc::new(crate::tables::WorkflowRecord {
            is_enabled: true,
            latest: crate::tables::DefinitionNumber(1),
            revisions_count: 1,
            revisions_bytes: 1,
        })
    }

    fn kept(cache: &mut Cache) -> Vec<bool> {
        let is_kept = |name| cache.get::<Workflows>(&key(name)).is_some();
        ["a", "b", "c"].map(is_kept).to_vec()
    }

    #[test]
    fn taking_an_absent_record_keeps_it_cached() {
        let mut cache = Cache::bounded(CACHE_RECORDS_MAX, 1_000);
        cache.keep::<Workflows>(&key("a"), Some(&record()), 100);
        cache.keep::<Workflows>(&key("b"), None, 0);
        assert!(cache.take::<Workflows>(&key("a")).is_some());
        assert!(cache.take::<Workflows>(&key("b")).is_none());
        assert_eq!(kept(&mut cache), [false, true, false]);
        assert_eq!(cache.bytes, key("b").len());
    }

    #[test]
    fn past_its_bytes_the_record_that_was_used_longest_ago_goes() {
        let of_key = key("a").len();
        let mut cache = Cache::bounded(CACHE_RECORDS_MAX, 2 * (100 + of_key));
        cache.keep::<Workflows>(&key("a"), Some(&record()), 100);
        cache.keep::<Workflows>(&key("b"), Some(&record()), 100);
        assert_eq!(kept(&mut cache), [true, true, false]);
        cache.keep::<Workflows>(&key("c"), Some(&record()), 100);
        assert_eq!(kept(&mut cache), [false, true, true]);
        // Replaced and deleted records no longer count.
        cache.keep::<Workflows>(&key("c"), Some(&record()), 50);
        cache.forget(&key("b"));
        assert_eq!(cache.bytes, 50 + of_key);
        let cell = Cell::new::<Workflows>(record());
        cache.follow(&key("a"), &cell, 150);
        assert_eq!(kept(&mut cache), [true, false, true]);
        cache.keep::<Workflows>(&key("b"), Some(&record()), 10_000);
        assert_eq!((kept(&mut cache), cache.bytes), (vec![false; 3], 0));
    }

    #[test]
    fn past_its_count_the_record_that_was_used_longest_ago_goes() {
        let two = NonZeroUsize::new(2).expect("above zero");
        let mut cache = Cache::bounded(two, usize::MAX);
        for name in ["a", "b", "c"] {
            cache.keep::<Workflows>(&key(name), Some(&record()), 1);
        }
        assert_eq!(kept(&mut cache), [false, true, true]);
        assert_eq!(cache.bytes, 2 * (1 + key("a").len()));
    }

    #[test]
    fn that_nothing_is_stored_is_kept_until_something_is_written() {
        let mut cache = Cache::new();
        cache.keep::<Workflows>(&key("a"), None, 0);
        assert_eq!(cache.get::<Workflows>(&key("a")), Some(None));
        let cell = Cell::new::<Workflows>(record());
        cache.follow(&key("a"), &cell, 100);
        assert_eq!(cache.get::<Workflows>(&key("a")), Some(Some(record())));
        cache.forget(&key("a"));
        assert_eq!(cache.get::<Workflows>(&key("a")), None);
    }

    /// A hot table of which only open records are cached.
    struct Probes;

    impl Table for Probes {
        const NUMBER: u8 = 255;
        const IS_HOT: bool = true;
        type Key = u64;
        type Record = bool;

        fn is_worked_on(is_open: &bool) -> bool {
            *is_open
        }
    }

    #[test]
    fn a_record_that_is_no_longer_worked_on_is_not_kept() {
        let mut cache = Cache::new();
        let key = || row_key::<Probes>(&1, &mut Vec::new()).bytes().clone();
        cache.follow(&key(), &Cell::new::<Probes>(Arc::new(true)), 10);
        assert_eq!(cache.get::<Probes>(&key()), Some(Some(Arc::new(true))));
        cache.follow(&key(), &Cell::new::<Probes>(Arc::new(false)), 10);
        assert_eq!((cache.get::<Probes>(&key()), cache.bytes), (None, 0));
        cache.keep::<Probes>(&key(), Some(&Arc::new(false)), 10);
        assert_eq!(cache.get::<Probes>(&key()), None);
    }
}
