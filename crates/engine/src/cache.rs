//! Hot records, decoded (design rule 4).

use crate::limits::{CACHE_BYTES_MAX, CACHE_RECORDS_MAX};
use crate::overlay::{AnyRecord, Cell, downcast};
use crate::tables::Table;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The hot records that were used last. Changes only with what is in the store or about to be, so it
/// never changes an answer. Bounded in count and in bytes.
pub(crate) struct Cache {
    records: LruCache<Vec<u8>, Kept>,
    /// The encoded records' bytes in all.
    bytes: usize,
    bytes_max: usize,
}

struct Kept {
    record: AnyRecord,
    /// Encoded, keys included; decoded it is a few times as much.
    bytes: usize,
}

impl Cache {
    pub(crate) fn new() -> Self {
        Self::bounded(CACHE_RECORDS_MAX, CACHE_BYTES_MAX)
    }

    fn bounded(records_max: NonZeroUsize, bytes_max: usize) -> Self {
        Self {
            records: LruCache::new(records_max),
            bytes: 0,
            bytes_max,
        }
    }

    /// The record at `key`, if it is kept.
    pub(crate) fn get<T: Table>(&mut self, key: &[u8]) -> Option<Arc<T::Record>> {
        if !T::IS_HOT {
            return None;
        }
        let kept = self.records.get(key)?;
        Some(downcast::<T>(kept.record.clone()))
    }

    /// Keeps a record that was read, `bytes` long in the store.
    pub(crate) fn keep<T: Table>(&mut self, key: &[u8], record: &Arc<T::Record>, bytes: usize) {
        if T::IS_HOT {
            self.put(key, record.clone(), bytes);
        }
    }

    /// Follows a write, `bytes` long in the store.
    pub(crate) fn follow(&mut self, key: &[u8], cell: Option<&Cell>, bytes: usize) {
        match cell {
            Some(cell) if cell.is_hot() => self.put(key, cell.any_record(), bytes),
            Some(_) => {}
            None => {
                let gone = self.records.pop(key);
                self.bytes -= gone.map_or(0, |kept| kept.bytes);
            }
        }
    }

    fn put(&mut self, key: &[u8], record: AnyRecord, bytes: usize) {
        let bytes = bytes + key.len();
        self.bytes += bytes;
        let pushed_out = self.records.push(key.to_vec(), Kept { record, bytes });
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
    use crate::tables::{Workflows, encode_key};

    fn key(name: &str) -> Vec<u8> {
        let name = crate::ids::WorkflowName::new(name).expect("a name");
        encode_key::<Workflows>(&(Namespace::default_namespace(), name))
    }

    fn record() -> Arc<crate::tables::WorkflowRecord> {
        Arc::new(crate::tables::WorkflowRecord {
            is_enabled: true,
            latest: crate::tables::DefinitionNumber(1),
        })
    }

    fn kept(cache: &mut Cache) -> Vec<bool> {
        let is_kept = |name| cache.get::<Workflows>(&key(name)).is_some();
        ["a", "b", "c"].map(is_kept).to_vec()
    }

    #[test]
    fn past_its_bytes_the_record_that_was_used_longest_ago_goes() {
        let of_key = key("a").len();
        let mut cache = Cache::bounded(CACHE_RECORDS_MAX, 2 * (100 + of_key));
        cache.keep::<Workflows>(&key("a"), &record(), 100);
        cache.keep::<Workflows>(&key("b"), &record(), 100);
        assert_eq!(kept(&mut cache), [true, true, false]);
        cache.keep::<Workflows>(&key("c"), &record(), 100);
        assert_eq!(kept(&mut cache), [false, true, true]);
        // What was replaced or deleted counts no more.
        cache.keep::<Workflows>(&key("c"), &record(), 50);
        cache.follow(&key("b"), None, 0);
        assert_eq!(cache.bytes, 50 + of_key);
        let cell = Cell::new::<Workflows>(record());
        cache.follow(&key("a"), Some(&cell), 150);
        assert_eq!(kept(&mut cache), [true, false, true]);
        cache.keep::<Workflows>(&key("b"), &record(), 10_000);
        assert_eq!((kept(&mut cache), cache.bytes), (vec![false; 3], 0));
    }

    #[test]
    fn past_its_count_the_record_that_was_used_longest_ago_goes() {
        let two = NonZeroUsize::new(2).expect("above zero");
        let mut cache = Cache::bounded(two, usize::MAX);
        for name in ["a", "b", "c"] {
            cache.keep::<Workflows>(&key(name), &record(), 1);
        }
        assert_eq!(kept(&mut cache), [false, true, true]);
        assert_eq!(cache.bytes, 2 * (1 + key("a").len()));
    }
}
