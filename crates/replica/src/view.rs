//! A read view of the state at one index.

use crate::read::ReadError;
use crate::state::rows::{self, RowError};
use crate::state::store::StateStore;
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError, Visitor};

/// The state at one index.
pub struct View<'a> {
    rows: &'a dyn Reader,
    index: u64,
    now_ms: u64,
}

impl View<'_> {
    pub(crate) fn open<T>(
        store: &dyn StateStore,
        read: impl FnOnce(&View<'_>) -> T,
    ) -> Result<T, ReadError> {
        let mut read = Some(read);
        let mut result = None;
        store.frozen(&mut |rows| {
            let Some(read) = read.take() else { return };
            result = Some(rows::applied_position(rows).map(|applied_position| {
                let index = applied_position.index().unwrap_or(0);
                read(&View {
                    rows,
                    index,
                    now_ms: applied_position.now_ms,
                })
            }));
        });
        let result = result.expect("the store calls back before it returns");
        result.map_err(|error| match error {
            RowError::Store(error) => ReadError::Store(error),
            corrupt @ RowError::Corrupt { .. } => ReadError::Store(StoreError(Box::new(corrupt))),
        })
    }

    /// The last entry that the view includes.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The replicated time after that entry, in milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }
}

impl Reader for View<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.rows.get(key)
    }

    fn scan(&self, range: &KeyRange, order: Order, visitor: Visitor<'_>) -> Result<(), StoreError> {
        self.rows.scan(range, order, visitor)
    }
}
