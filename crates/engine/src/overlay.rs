//! The write overlay of an entry: decoded writes over the store, with per-turn rollback.

use crate::store::KeyRange;
use crate::tables::{RowKey, Table};
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use std::any::Any;
use std::cell::OnceCell;
use std::collections::BTreeMap;
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
///
/// Most rows are only written and looked up, so they are hashed. Their order is the order of the first writes, never
/// that of the hashes (design rule 1); the rows of a table are sorted once it is scanned, and all rows at the end.
#[derive(Default)]
pub(crate) struct Overlay {
    rows: IndexMap<RowKey, Written, RandomState>,
    /// The number of rows that earlier turns wrote.
    kept_count: usize,
    /// By table number.
    tables: Vec<TableRows>,
    /// The current turn.
    turn: u64,
    /// The values of earlier turns that the current turn overwrote.
    replaced: Vec<Replaced>,
}

/// Why a row is there.
const PLACED: &str = "a place is that of a row";

/// The capacity that is kept for the next entry.
const ROWS_KEPT_MAX: usize = 8 << 10;

/// The writes to one table.
#[derive(Default)]
struct TableRows {
    /// Where its rows are, in the order of the first writes.
    places: Vec<usize>,
    /// The same in key order; only if the table was scanned.
    ordered: OnceCell<BTreeMap<RowKey, usize>>,
}

struct Written {
    cell: Option<Cell>,
    /// The turn that wrote the value.
    turn: u64,
}

/// A row of a table that is being sorted. The front of its key decides nearly always, so that two rows are compared
/// without a look at either.
struct Placed {
    /// The first bytes of the key after the table's number.
    front: u128,
    place: usize,
}

struct Replaced {
    place: usize,
    before: Written,
}

impl Overlay {
    pub(crate) fn get(&self, key: &RowKey) -> Option<Option<&Cell>> {
        // Many lookups are in tables without writes.
        if self.tables.get(key.table())?.places.is_empty() {
            return None;
        }
        self.rows.get(key).map(|written| written.cell.as_ref())
    }

    /// The record at `key` for a change by the current turn, if the entry has written one, and whether it is the turn's
    /// first write to it. Costs one lookup.
    pub(crate) fn get_mut<T: Table>(&mut self, key: &RowKey) -> Option<(&mut T::Record, bool)> {
        let (place, _, written) = self.rows.get_full_mut(key)?;
        let cell = written.cell.as_mut()?;
        let is_first = written.turn != self.turn;
        if is_first {
            let before = Written {
                cell: Some(cell.clone()),
                turn: written.turn,
            };
            self.replaced.push(Replaced { place, before });
            written.turn = self.turn;
        }
        if Arc::get_mut(&mut cell.record).is_none() {
            cell.record = Arc::new(typed::<T>(cell.record.as_ref()).clone());
        }
        let record = Arc::get_mut(&mut cell.record).expect("it is not shared");
        let record = record
            .downcast_mut()
            .expect("a cell is made with its table");
        Some((record, is_first))
    }

    /// Writes or deletes a record in the current turn.
    pub(crate) fn set(&mut self, key: RowKey, cell: Option<Cell>) {
        let (turn, table) = (self.turn, key.table());
        let (place, before) = self.rows.insert_full(key, Written { cell, turn });
        if let Some(before) = before {
            if before.turn != turn {
                self.replaced.push(Replaced { place, before });
            }
            return;
        }
        if self.tables.len() <= table {
            self.tables.resize_with(table + 1, TableRows::default);
        }
        let table = &mut self.tables[table];
        table.places.push(place);
        if let Some(ordered) = table.ordered.get_mut() {
            let (key, _) = self.rows.get_index(place).expect(PLACED);
            ordered.insert(key.clone(), place);
        }
    }

    /// Whether nothing was written since the entry began.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the current turn wrote or deleted anything.
    pub(crate) fn has_writes_of_turn(&self) -> bool {
        self.rows.len() > self.kept_count || !self.replaced.is_empty()
    }

    /// Ends the current turn and keeps its writes.
    pub(crate) fn keep_turn(&mut self) {
        self.replaced.clear();
        self.kept_count = self.rows.len();
        self.turn += 1;
    }

    /// Ends the current turn and rolls back its writes.
    pub(crate) fn drop_turn(&mut self) {
        for Replaced { place, before } in self.replaced.drain(..) {
            self.rows[place] = before;
        }
        while self.rows.len() > self.kept_count
            && let Some((key, _)) = self.rows.pop()
        {
            let table = &mut self.tables[key.table()];
            table.places.pop();
            if let Some(ordered) = table.ordered.get_mut() {
                ordered.remove(&key);
            }
        }
        self.turn += 1;
    }

    /// The number of written or deleted keys.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// All writes, in key order.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = (&RowKey, Option<&Cell>)> {
        // Table by table, which is the order of the keys' first byte.
        let places = self.tables.iter().flat_map(|table| {
            let mut places: Vec<_> = table
                .places
                .iter()
                .map(|place| self.placed(*place))
                .collect();
            places.sort_unstable_by(|one, other| {
                let fronts = one.front.cmp(&other.front);
                fronts.then_with(|| self.key(one.place).cmp(self.key(other.place)))
            });
            places
        });
        places.map(|placed| {
            let (key, written) = self.row(placed.place);
            (key, written.cell.as_ref())
        })
    }

    fn placed(&self, place: usize) -> Placed {
        let front = self.key(place).in_table();
        Placed { front, place }
    }

    fn key(&self, place: usize) -> &RowKey {
        self.row(place).0
    }

    fn row(&self, place: usize) -> (&RowKey, &Written) {
        let row = self.rows.get_index(place);
        row.expect(PLACED)
    }

    /// Forgets all writes: the next entry begins.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.rows.shrink_to(ROWS_KEPT_MAX);
        for table in &mut self.tables {
            table.places.clear();
            table.places.shrink_to(ROWS_KEPT_MAX);
            table.ordered.take();
        }
        self.kept_count = 0;
    }

    /// The writes in `range`, which lies in one table, in key order.
    pub(crate) fn range(&self, range: &KeyRange) -> impl Iterator<Item = (&[u8], Option<&Cell>)> {
        let bounds = RowKey::new(&range.from)..RowKey::new(&range.to);
        let table = bounds.start.table();
        debug_assert!(bounds.end.table() <= table + 1);
        let table = self.tables.get(table);
        let ordered = table.map(|table| table.ordered.get_or_init(|| self.order(table)));
        let places = ordered.map(|ordered| ordered.range(bounds));
        places.into_iter().flatten().map(|(key, place)| {
            let (_, written) = self.row(*place);
            (key.as_slice(), written.cell.as_ref())
        })
    }

    /// The places of a table's rows in key order.
    fn order(&self, table: &TableRows) -> BTreeMap<RowKey, usize> {
        let places = table.places.iter();
        places
            .map(|place| (self.key(*place).clone(), *place))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ActionRunNumber, RunNumber};
    use crate::tables::{ActionRunsByRun, SchemaChecks, row_key};

    fn key(number: u64) -> RowKey {
        row_key::<SchemaChecks>(&(RunNumber(number), 0), &mut Vec::new())
    }

    fn cell() -> Option<Cell> {
        Some(Cell::new::<SchemaChecks>(Arc::new(())))
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

    #[test]
    fn a_turn_that_is_dropped_leaves_what_it_edited_as_it_was() {
        let key = row_key::<ActionRunsByRun>(&(RunNumber(1), ActionRunNumber(1)), &mut Vec::new());
        let cell = |event: u64| Some(Cell::new::<ActionRunsByRun>(Arc::new(event)));
        let event = |overlay: &Overlay| {
            let cell = overlay.get(&key).flatten();
            cell.map(|cell| *cell.record::<ActionRunsByRun>())
        };
        let mut overlay = Overlay::default();
        assert!(overlay.get_mut::<ActionRunsByRun>(&key).is_none());
        overlay.set(key.clone(), cell(1));
        overlay.keep_turn();
        let read_before = overlay.get(&key).flatten().cloned().expect("it was set");
        let edit = |overlay: &mut Overlay, next: u64| {
            let (event, is_first) = overlay
                .get_mut::<ActionRunsByRun>(&key)
                .expect("it was set");
            *event = next;
            is_first
        };
        assert!(edit(&mut overlay, 2));
        assert!(!edit(&mut overlay, 3));
        overlay.set(key.clone(), None);
        assert!(overlay.get_mut::<ActionRunsByRun>(&key).is_none());
        overlay.set(key.clone(), cell(4));
        assert!(!edit(&mut overlay, 5));
        assert_eq!(event(&overlay), Some(5));
        overlay.drop_turn();
        assert!(!overlay.has_writes_of_turn());
        assert_eq!(event(&overlay), Some(1));
        assert_eq!(*read_before.record::<ActionRunsByRun>(), 1);
        assert!(edit(&mut overlay, 6));
        overlay.keep_turn();
        assert_eq!(event(&overlay), Some(6));
    }

    #[test]
    fn a_scan_follows_the_writes_of_later_turns() {
        let all = KeyRange::prefix(&[SchemaChecks::NUMBER]);
        let scanned = |overlay: &Overlay| -> Vec<bool> {
            let rows = overlay.range(&all);
            rows.map(|(_, cell)| cell.is_some()).collect()
        };
        let mut overlay = Overlay::default();
        assert!(scanned(&overlay).is_empty());
        overlay.set(key(3), cell());
        overlay.set(key(1), None);
        assert_eq!(scanned(&overlay), [false, true]);
        overlay.keep_turn();
        overlay.set(key(2), cell());
        overlay.set(key(1), cell());
        assert_eq!(scanned(&overlay), [true, true, true]);
        overlay.drop_turn();
        assert_eq!(scanned(&overlay), [false, true]);
        overlay.clear();
        assert!(scanned(&overlay).is_empty());
    }
}
