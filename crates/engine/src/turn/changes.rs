//! What a turn changed, for rows that follow other rows (design rule 4).

use super::Turn;
use crate::overlay::Cell;
use crate::store::{KeyRange, StoreError};
use crate::tables::{Table, decode_key, encode_prefix};
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
        let range = KeyRange::prefix(&encode_prefix::<T>(&()));
        let written = self.overlay.range(&range);
        let written: Vec<_> = written
            .map(|(key, cell)| (key.to_vec(), cell.map(Cell::record::<T>)))
            .collect();
        let mut changes = Vec::with_capacity(written.len());
        for (bytes, after) in written {
            let key = decode_key::<T>(&bytes).expect("a turn writes keys of its tables only");
            let before = self.before::<T>(&bytes)?;
            changes.push(Change { key, before, after });
        }
        Ok(changes)
    }
}
