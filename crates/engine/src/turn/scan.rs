//! Scans of a turn: a merge of the entry's writes and the store.

use super::{Row, Turn};
use crate::overlay::Cell;
use crate::store::{KeyRange, Order, StoreError};
use crate::tables::{
    Key, Ready, ReadyQueue, Table, damaged, decode_record, encode_key, encode_prefix, key_of,
    range_from,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Whether a scan continues, unless the store fails.
type Flow = Result<ControlFlow<()>, StoreError>;

/// Called for each key of a scan with its record, until it breaks.
type Visit<'a> = &'a mut dyn FnMut(&[u8], Found<'_>) -> Flow;

/// What a scan finds at a key.
enum Found<'a> {
    /// A record that the entry wrote.
    Written(&'a Cell),
    /// The stored bytes, decoded only on demand.
    Stored(&'a [u8]),
}

impl Found<'_> {
    fn record<T: Table>(self) -> Result<Arc<T::Record>, StoreError> {
        match self {
            Self::Written(cell) => Ok(cell.record::<T>()),
            Self::Stored(value) => decode_record::<T>(value).map(Arc::new).map_err(damaged),
        }
    }
}

impl Turn<'_, '_> {
    /// The rows of `T` whose keys begin with `prefix`, at most `count_max` of them.
    pub(crate) fn list<T: Table>(
        &self,
        prefix: &impl Key,
        count_max: usize,
    ) -> Result<Vec<Row<T>>, StoreError> {
        let mut rows = Vec::new();
        if count_max == 0 {
            return Ok(rows);
        }
        self.visit::<T>(prefix, |key, record| {
            rows.push((key, record));
            if rows.len() < count_max {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        Ok(rows)
    }

    /// Visits the rows of `T` whose keys begin with `prefix`, in key order, until `visit` breaks.
    pub(crate) fn visit<T: Table>(
        &self,
        prefix: &impl Key,
        mut visit: impl FnMut(T::Key, Arc<T::Record>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.visit_range::<T>(&KeyRange::prefix(&encode_prefix::<T>(prefix)), &mut visit)
    }

    /// Visits the rows of `T` in `range`, in key order, until `visit` breaks.
    pub(crate) fn visit_range<T: Table>(
        &self,
        range: &KeyRange,
        mut visit: impl FnMut(T::Key, Arc<T::Record>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        self.visit_rows::<T>(range, Some(range), &mut visit)
            .map(drop)
    }

    /// Like [`Turn::visit`], from the first key at or after `first`, which begins with `prefix`.
    pub(crate) fn visit_from<T: Table>(
        &self,
        prefix: &impl Key,
        first: &impl Key,
        visit: impl FnMut(T::Key, Arc<T::Record>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.visit_range::<T>(&range_from::<T>(prefix, first), visit)
    }

    /// Visits the tasks that wait in a queue, or those after `after`, in the order in which they are taken.
    ///
    /// The scan begins at the queue's head, so that it skips the tombstones of taken rows (design rule 4).
    pub(crate) fn visit_ready(
        &mut self,
        queue: &ReadyQueue,
        after: Option<&<Ready as Table>::Key>,
        mut visit: impl FnMut(<Ready as Table>::Key) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let prefix = encode_prefix::<Ready>(queue);
        let mut range = KeyRange::prefix(&prefix);
        if let Some(after) = after {
            range.from = encode_key::<Ready>(after);
            range.from.push(0);
            return self.visit_range::<Ready>(&range, |key, _| visit(key));
        }
        let stored = self.entry.heads.stored_range(&range);
        let is_looked_up = stored.is_some();
        let first = self.visit_rows::<Ready>(&range, stored.as_ref(), &mut |key, _| visit(key))?;
        if is_looked_up {
            self.entry.heads.found(prefix, first);
        }
        Ok(())
    }

    /// The first key of `T` at or after `first` that begins with `prefix`. Decodes no record.
    pub(crate) fn first_key_from<T: Table>(
        &self,
        prefix: &impl Key,
        first: &impl Key,
    ) -> Result<Option<T::Key>, StoreError> {
        let range = range_from::<T>(prefix, first);
        if range.is_empty() {
            return Ok(None);
        }
        let mut found = None;
        self.visit_found(&range, Some(&range), &mut |key, _| {
            found = Some(key_of::<T>(key)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// At most `count_max` keys of `T` that begin with `prefix`. Decodes no record.
    pub(crate) fn keys<T: Table>(
        &self,
        prefix: &impl Key,
        count_max: usize,
    ) -> Result<Vec<T::Key>, StoreError> {
        let mut keys = Vec::new();
        if count_max == 0 {
            return Ok(keys);
        }
        let range = KeyRange::prefix(&encode_prefix::<T>(prefix));
        self.visit_found(&range, Some(&range), &mut |key, _| {
            keys.push(key_of::<T>(key)?);
            Ok(if keys.len() < count_max {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        })?;
        Ok(keys)
    }

    /// Visits the written rows of `range` and the stored rows of `stored`; returns the first stored key.
    fn visit_rows<T: Table>(
        &self,
        range: &KeyRange,
        stored: Option<&KeyRange>,
        visit: &mut dyn FnMut(T::Key, Arc<T::Record>) -> ControlFlow<()>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.visit_found(range, stored, &mut |key, found| {
            let record = found.record::<T>()?;
            self.visited.add_content(T::content_bytes(&record));
            Ok(visit(key_of::<T>(key)?, record))
        })
    }

    fn visit_found(
        &self,
        range: &KeyRange,
        stored: Option<&KeyRange>,
        visit: Visit<'_>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let visit: Visit<'_> = &mut |key, found| {
            self.visited.add_row();
            visit(key, found)
        };
        let mut written = self.entry.overlay.range(range).peekable();
        let mut first = None;
        let mut flow = Ok(ControlFlow::Continue(()));
        let mut show = |key: &[u8], value: &[u8]| {
            while let Some((earlier, cell)) = written.next_if(|(written, _)| *written < key) {
                if show_written(visit, earlier, cell)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            match written.next_if(|(written, _)| *written == key) {
                Some((key, cell)) => show_written(visit, key, cell),
                None => visit(key, Found::Stored(value)),
            }
        };
        if let Some(stored) = stored {
            let store = self.entry.store;
            store.scan(stored, Order::Ascending, &mut |key, value| {
                first.get_or_insert_with(|| key.to_vec());
                flow = show(key, value);
                match flow {
                    Ok(flow) => flow,
                    Err(_) => ControlFlow::Break(()),
                }
            })?;
        }
        while flow?.is_continue() {
            let Some((key, cell)) = written.next() else {
                break;
            };
            flow = show_written(visit, key, cell);
        }
        Ok(first)
    }
}

/// Visits a written row, unless it is a deletion.
fn show_written(visit: Visit<'_>, key: &[u8], cell: Option<&Cell>) -> Flow {
    match cell {
        Some(cell) => visit(key, Found::Written(cell)),
        None => Ok(ControlFlow::Continue(())),
    }
}
