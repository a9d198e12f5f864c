//! What a turn changed, for rows that follow other rows (design rule 4).

use super::{EntryState, Turn, stored};
use crate::overlay::{Before, Cell};
use crate::store::StoreError;
use crate::tables::{Table, decode_key};
use std::sync::Arc;

/// A record that the turn wrote or deleted.
pub(crate) struct Change<T: Table> {
    pub(crate) key: T::Key,
    /// What was there before the turn.
    pub(crate) before: Option<Arc<T::Record>>,
    /// What is there now.
    pub(crate) after: Option<Arc<T::Record>>,
}

impl Turn<'_, '_> {
    /// The records of `T` that the turn wrote or deleted, in key order.
    pub(crate) fn changes<T: Table>(&mut self) -> Result<Vec<Change<T>>, StoreError> {
        let EntryState {
            overlay,
            cache,
            store,
            ..
        } = &mut *self.entry;
        let mut changes = Vec::new();
        for (bytes, before, after) in overlay.changes(&[T::NUMBER]) {
            let key = decode_key::<T>(bytes).expect("a turn writes keys of its tables only");
            let before = match before {
                Before::Written(cell) => cell.map(Cell::record::<T>),
                Before::Stored => stored::<T>(*store, cache, bytes)?,
            };
            let after = after.map(Cell::record::<T>);
            changes.push(Change { key, before, after });
        }
        Ok(changes)
    }
}
