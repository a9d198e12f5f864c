//! Where rows are read: in a turn, or in a stored state.

use super::{Table, read};
use crate::store::{Reader, StoreError};
use std::sync::Arc;

/// Where rows are read. What decides about a command in its turn can so decide by a stored state before.
pub(crate) trait RowSource {
    /// The record at `key`.
    fn row<T: Table>(&mut self, key: &T::Key) -> Result<Option<Arc<T::Record>>, StoreError>;
    /// The time at which it is read, in milliseconds.
    fn now_ms(&self) -> u64;
}

/// Stored rows, read at a time in milliseconds.
pub(crate) struct StoredRows<'r>(pub(crate) &'r dyn Reader, pub(crate) u64);

impl RowSource for StoredRows<'_> {
    fn row<T: Table>(&mut self, key: &T::Key) -> Result<Option<Arc<T::Record>>, StoreError> {
        Ok(read::<T>(self.0, key)?.map(Arc::new))
    }

    fn now_ms(&self) -> u64 {
        self.1
    }
}
