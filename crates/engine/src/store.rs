//! The store that the engine reads: an ordered key-value space (design rule 4).

mod writes;

pub use writes::{Iter as WritesIter, Write, Writes};

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

/// A failure of the store itself. It is never a rejection: the process must exit (design rule 10).
#[derive(Debug, thiserror::Error)]
#[error("the state store failed: {0}")]
pub struct StoreError(#[from] pub Box<dyn std::error::Error + Send + Sync>);

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// From the smallest key.
    Ascending,
    /// From the largest key.
    Descending,
}

/// Keys from `from` (inclusive) to `to` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key.
    pub from: Vec<u8>,
    /// The key after the last.
    pub to: Vec<u8>,
}

impl KeyRange {
    /// All keys that begin with `prefix`, which must not be all `0xff`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let mut to = prefix.to_vec();
        while to.last() == Some(&0xff) {
            to.pop();
        }
        let last = to
            .last_mut()
            .expect("a prefix has a byte below 0xff: table numbers are small");
        *last += 1;
        Self {
            from: prefix.to_vec(),
            to,
        }
    }

    /// Whether the range is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (
            Bound::Included(self.from.as_slice()),
            Bound::Excluded(self.to.as_slice()),
        )
    }
}

/// Called for each key and value of a scan until it breaks.
pub type Visitor<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// A consistent view of an ordered key-value space.
pub trait Reader {
    /// The value at `key`.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits the keys of `range` in `order` until the visitor breaks.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    fn scan(&self, range: &KeyRange, order: Order, visitor: Visitor<'_>) -> Result<(), StoreError>;
}

/// An in-memory store for tests and simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStore {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl MemoryStore {
    /// Applies the writes of one entry.
    pub fn write(&mut self, writes: &Writes) {
        for (key, value) in writes {
            match value {
                Some(value) => self.rows.insert(key.to_vec(), value.to_vec()),
                None => self.rows.remove(key),
            };
        }
    }

    /// All rows in key order.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.rows
            .iter()
            .map(|(key, value)| (key.as_slice(), value.as_slice()))
    }
}

impl Reader for MemoryStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.rows.get(key).cloned())
    }

    fn scan(&self, range: &KeyRange, order: Order, visitor: Visitor<'_>) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let mut rows = self.rows.range::<[u8], _>(range.bounds());
        while let Some((key, value)) = match order {
            Order::Ascending => rows.next(),
            Order::Descending => rows.next_back(),
        } {
            if visitor(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_range_ends_before_the_next_prefix() {
        let range = KeyRange::prefix(&[1, 0xff]);
        assert_eq!(
            range,
            KeyRange {
                from: vec![1, 0xff],
                to: vec![2]
            }
        );
    }

    #[test]
    fn a_scan_goes_both_ways_and_stops_on_demand() {
        let mut store = MemoryStore::default();
        let row = |byte: u8| (vec![byte], Some(vec![byte]));
        store.write(&Writes::from([row(1), row(2), row(3), row(9)]));
        let visit = |order| {
            let mut seen = Vec::new();
            let range = KeyRange {
                from: vec![1],
                to: vec![9],
            };
            store
                .scan(&range, order, &mut |key, _| {
                    seen.push(key[0]);
                    if seen.len() == 2 {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })
                .expect("memory does not fail");
            seen
        };
        assert_eq!(visit(Order::Ascending), [1, 2]);
        assert_eq!(visit(Order::Descending), [3, 2]);
    }
}
