//! The write overlay of an entry: decoded writes over the store, with per-turn rollback.

use crate::store::KeyRange;
use crate::tables::{RowKey, Table};
use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map;
use std::sync::Arc;

/// A decoded record of any table.
pub(crate) type AnyRecord = Arc<dyn Any + Send + Sync>;

/// A written record. Readers get it decoded; it is encoded once, at the end of the entry.
#[derive(Clone)]
pub(crate) struct Cell {
    record: AnyRecord,
    kind: &'static Kind,
}

/// The type-erased functions that a cell needs from its table.
struct Kind {
    encode_into: fn(&(dyn Any + Send + Sync), &mut Vec<u8>),
    is_hot: bool,
    is_worked_on: fn(&(dyn Any + Send + Sync)) -> bool,
}

/// Provides the [`Kind`] of each table.
struct KindOf<T>(std::marker::PhantomData<T>);

impl<T: Table> KindOf<T> {
    const KIND: Kind = Kind {
        encode_into: encode_any::<T>,
        is_hot: T::IS_HOT,
        is_worked_on: |record| T::is_worked_on(typed::<T>(record)),
    };
}

impl Cell {
    pub(crate) fn new<T: Table>(record: Arc<T::Record>) -> Self {
        Self {
            record,
            kind: &KindOf::<T>::KIND,
        }
    }

    pub(crate) fn record<T: Table>(&self) -> Arc<T::Record> {
        downcast::<T>(self.record.clone())
    }

    pub(crate) fn any_record(&self) -> AnyRecord {
        self.record.clone()
    }

    /// Whether the cache keeps records of this table.
    pub(crate) fn is_hot(&self) -> bool {
        self.kind.is_hot
    }

    /// Whether the cache keeps this record.
    pub(crate) fn is_worked_on(&self) -> bool {
        (self.kind.is_worked_on)(self.record.as_ref())
    }

    /// Appends the encoded record.
    pub(crate) fn encode_into(&self, bytes: &mut Vec<u8>) {
        (self.kind.encode_into)(self.record.as_ref(), bytes);
    }
}

fn encode_any<T: Table>(record: &(dyn Any + Send + Sync), bytes: &mut Vec<u8>) {
    T::encode(typed::<T>(record), bytes);
}

fn typed<T: Table>(record: &(dyn Any + Send + Sync)) -> &T::Record {
    record
        .downcast_ref()
        .expect("a cell is made with its table")
}

/// Downcasts the record to its table's type.
///
/// # Panics
/// If it belongs to another table.
pub(crate) fn downcast<T: Table>(record: AnyRecord) -> Arc<T::Record> {
    record
        .downcast()
        .expect("a key's first byte is its table's number, so its record is of that table")
}

/// The writes of an entry by key; `None` deletes. The writes of the current turn can be rolled back.
#[derive(Default)]
pub(crate) struct Overlay {
    /// By table number. Most writes go to few tables, and many lookups go to tables without writes.
    tables: Vec<Rows>,
    /// The current turn.
    turn: u64,
    /// The values that the current turn overwrote, in the order of its first write to each key.
    replaced: Vec<Replaced>,
}

/// The writes to one table.
type Rows = BTreeMap<RowKey, Written>;

struct Written {
    cell: Option<Cell>,
    /// The turn that wrote the value.
    turn: u64,
}

struct Replaced {
    key: RowKey,
    /// The value that an earlier turn of the entry had written.
    before: Option<Written>,
}

impl Overlay {
    pub(crate) fn get(&self, key: &RowKey) -> Option<Option<&Cell>> {
        let rows = self.tables.get(key.table())?;
        rows.get(key).map(|written| written.cell.as_ref())
    }

    /// The record at `key` for in-place change, if the current turn has written it and it is not shared.
    pub(crate) fn get_mut<T: Table>(&mut self, key: &RowKey) -> Option<&mut T::Record> {
        let written = self.tables.get_mut(key.table())?.get_mut(key)?;
        if written.turn != self.turn {
            return None;
        }
        Arc::get_mut(&mut written.cell.as_mut()?.record)?.downcast_mut()
    }

    /// Writes or deletes a record in the current turn.
    pub(crate) fn set(&mut self, key: RowKey, cell: Option<Cell>) {
        let turn = self.turn;
        let written = Written { cell, turn };
        if self.tables.len() <= key.table() {
            self.tables.resize_with(key.table() + 1, Rows::new);
        }
        match self.tables[key.table()].entry(key) {
            btree_map::Entry::Occupied(mut row) => {
                let is_first = row.get().turn != turn;
                let before = row.insert(written);
                if is_first {
                    let key = row.key().clone();
                    let before = Some(before);
                    self.replaced.push(Replaced { key, before });
                }
            }
            btree_map::Entry::Vacant(row) => {
                let key = row.key().clone();
                self.replaced.push(Replaced { key, before: None });
                row.insert(written);
            }
        }
    }

    /// Whether the current turn wrote or deleted anything.
    pub(crate) fn has_writes_of_turn(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// Ends the current turn and keeps its writes.
    pub(crate) fn keep_turn(&mut self) {
        self.replaced.clear();
        self.turn += 1;
    }

    /// Ends the current turn and rolls back its writes.
    pub(crate) fn drop_turn(&mut self) {
        for Replaced { key, before } in self.replaced.drain(..) {
            let rows = &mut self.tables[key.table()];
            match before {
                Some(written) => rows.insert(key, written),
                None => rows.remove(&key),
            };
        }
        self.turn += 1;
    }

    /// The number of written or deleted keys.
    pub(crate) fn len(&self) -> usize {
        self.tables.iter().map(Rows::len).sum()
    }

    /// All writes, in key order.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = (RowKey, Option<Cell>)> {
        let rows = self.tables.into_iter().flatten();
        rows.map(|(key, written)| (key, written.cell))
    }

    /// The writes in `range`, which lies in one table, in key order.
    pub(crate) fn range(&self, range: &KeyRange) -> impl Iterator<Item = (&[u8], Option<&Cell>)> {
        let bounds = RowKey::new(&range.from)..RowKey::new(&range.to);
        debug_assert!(bounds.end.table() <= bounds.start.table() + 1);
        let rows = self.tables.get(bounds.start.table());
        let rows = rows.map(|rows| rows.range(bounds)).into_iter().flatten();
        rows.map(|(key, written)| (key.as_slice(), written.cell.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RunNumber;
    use crate::tables::{InputChecks, row_key};

    fn key(number: u64) -> RowKey {
        row_key::<InputChecks>(&(RunNumber(number), 0))
    }

    fn cell() -> Option<Cell> {
        Some(Cell::new::<InputChecks>(Arc::new(())))
    }

    fn kept(overlay: &Overlay) -> Vec<Option<bool>> {
        let is_there = |number| overlay.get(&key(number)).map(|cell| cell.is_some());
        (1..=3).map(is_there).collect()
    }

    #[test]
    fn a_turn_that_is_dropped_leaves_what_earlier_turns_wrote() {
        let mut overlay = Overlay::default();
        overlay.set(key(1), cell());
        overlay.set(key(2), None);
        overlay.keep_turn();
        overlay.set(key(1), None);
        overlay.set(key(1), cell());
        overlay.set(key(1), None);
        overlay.set(key(2), cell());
        overlay.set(key(3), cell());
        assert_eq!(kept(&overlay), [Some(false), Some(true), Some(true)]);
        overlay.drop_turn();
        assert!(!overlay.has_writes_of_turn());
        assert_eq!(kept(&overlay), [Some(true), Some(false), None]);
    }
}
