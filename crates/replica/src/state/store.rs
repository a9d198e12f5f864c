//! The state store: an ordered key-value space that can be captured and replaced.

use crate::storage::StoreFigures;
use flotilla_engine::store::{Reader, StoreError, Writes};
use std::sync::Arc;

/// Rows that threads may share.
pub trait SharedReader: Reader + Send + Sync {}

impl<T: Reader + Send + Sync> SharedReader for T {}

/// The storage of the state. A crash leaves a prefix of the writes that contains everything before
/// the last [`StateStore::flush`]; each write is atomic.
pub trait StateStore: Send + Sync + 'static {
    /// The current rows at each call.
    fn reader(&self) -> Arc<dyn SharedReader>;

    /// Calls `read` with the current rows, which do not change while it runs.
    fn frozen(&self, read: &mut dyn FnMut(&dyn Reader));

    /// Executes the writes atomically.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails; it is then unknown what was written.
    fn write(&self, writes: &Writes) -> Result<(), StoreError>;

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    fn flush(&self) -> Result<(), StoreError>;

    /// Limits the memory for data that is not durable yet to a percentage of the default; from now
    /// on, also for rows that are received.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    fn limit_buffers(&self, percent: u32) -> Result<(), StoreError>;

    /// Keeps a durable copy of the current rows, replacing the previous one.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    fn capture(&self) -> Result<Arc<dyn SharedReader>, StoreError>;

    /// The copy of the last [`StateStore::capture`], also of an earlier process; `None` after an
    /// [`Incoming::install`].
    fn captured(&self) -> Option<Arc<dyn SharedReader>>;

    /// Begins to receive rows that will replace all existing ones.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    fn receive(&self) -> Result<Box<dyn Incoming>, StoreError>;

    /// Its current figures, if it reports any.
    fn figures(&self) -> Option<StoreFigures> {
        None
    }
}

/// Rows that are being received; dropping it discards them.
pub trait Incoming: Send {
    /// Adds rows.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    fn write(&mut self, writes: &Writes) -> Result<(), StoreError>;

    /// The rows received so far.
    fn reader(&self) -> &dyn Reader;

    /// Makes the rows durable and replaces all existing ones, by one rename. The captured copy is
    /// deleted before that: it may hold rows that are replaced because they were wrong.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
    fn install(self: Box<Self>) -> Result<(), StoreError>;
}
