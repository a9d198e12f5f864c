//! Writes that are not in the store yet, decoded.

use crate::store::KeyRange;
use crate::tables::{Table, encode_record};
use std::any::Any;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;

/// A decoded record of any table.
pub(crate) type AnyRecord = Arc<dyn Any + Send + Sync>;

/// A written record: decoded for readers, with the way to encode it once at the entry's end.
#[derive(Clone)]
pub(crate) struct Cell {
    record: AnyRecord,
    encode: fn(&(dyn Any + Send + Sync)) -> Vec<u8>,
    is_hot: bool,
}

impl Cell {
    pub(crate) fn new<T: Table>(record: Arc<T::Record>) -> Self {
        Self {
            record,
            encode: encode_any::<T>,
            is_hot: T::IS_HOT,
        }
    }

    pub(crate) fn record<T: Table>(&self) -> Arc<T::Record> {
        downcast::<T>(self.record.clone())
    }

    pub(crate) fn any_record(&self) -> AnyRecord {
        self.record.clone()
    }

    /// Whether its table's records are kept in the cache.
    pub(crate) fn is_hot(&self) -> bool {
        self.is_hot
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        (self.encode)(self.record.as_ref())
    }
}

fn encode_any<T: Table>(record: &(dyn Any + Send + Sync)) -> Vec<u8> {
    encode_record::<T>(
        record
            .downcast_ref()
            .expect("a cell is made with its table"),
    )
}

/// The record as its table's.
///
/// # Panics
/// When it is of another table.
pub(crate) fn downcast<T: Table>(record: AnyRecord) -> Arc<T::Record> {
    record
        .downcast()
        .expect("a key's first byte is its table's number, so its record is of that table")
}

/// Writes by key; `None` deletes.
#[derive(Default)]
pub(crate) struct Overlay {
    rows: BTreeMap<Vec<u8>, Option<Cell>>,
}

impl Overlay {
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<&Cell>> {
        self.rows.get(key).map(Option::as_ref)
    }

    pub(crate) fn set(&mut self, key: Vec<u8>, cell: Option<Cell>) {
        self.rows.insert(key, cell);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Puts the later writes of `other` on top.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }

    pub(crate) fn into_rows(self) -> BTreeMap<Vec<u8>, Option<Cell>> {
        self.rows
    }

    pub(crate) fn range(&self, range: &KeyRange) -> impl Iterator<Item = (&[u8], Option<&Cell>)> {
        self.rows
            .range::<[u8], _>(range.bounds())
            .map(|(key, cell)| (key.as_slice(), cell.as_ref()))
    }
}

/// The rows of `range` in key order; where both have a key, `upper` counts.
pub(crate) fn merged<'a>(
    upper: &'a Overlay,
    lower: &'a Overlay,
    range: &KeyRange,
) -> impl Iterator<Item = (&'a [u8], Option<&'a Cell>)> {
    Merge {
        upper: upper.range(range).peekable(),
        lower: lower.range(range).peekable(),
    }
}

struct Merge<U: Iterator, L: Iterator> {
    upper: Peekable<U>,
    lower: Peekable<L>,
}

impl<'a, U, L> Iterator for Merge<U, L>
where
    U: Iterator<Item = (&'a [u8], Option<&'a Cell>)>,
    L: Iterator<Item = (&'a [u8], Option<&'a Cell>)>,
{
    type Item = (&'a [u8], Option<&'a Cell>);

    fn next(&mut self) -> Option<Self::Item> {
        match (self.upper.peek(), self.lower.peek()) {
            (Some((upper, _)), Some((lower, _))) if lower < upper => self.lower.next(),
            (Some((upper, _)), Some((lower, _))) => {
                if upper == lower {
                    self.lower.next();
                }
                self.upper.next()
            }
            (Some(_), None) => self.upper.next(),
            (None, _) => self.lower.next(),
        }
    }
}
