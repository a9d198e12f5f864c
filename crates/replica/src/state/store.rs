//! The seam below the state: an ordered key-value space that can be captured and replaced.

use crate::storage::StoreFigures;
use flotilla_engine::store::{Reader, StoreError, Writes};
use std::sync::Arc;

/// Rows that threads may share.
pub trait SharedReader: Reader + Send + Sync {}

impl<T: Reader + Send + Sync> SharedReader for T {}

/// Where the state is kept. What a crash leaves is a prefix of the writes that contains everything
/// before the last [`StateStore::flush`]; each write is all or nothing.
pub trait StateStore: Send + Sync + 'static {
    /// The rows as they are at each call.
    fn reader(&self) -> Arc<dyn SharedReader>;

    /// Calls `read` with the rows as they are now, unchanged while it runs.
    fn frozen(&self, read: &mut dyn FnMut(&dyn Reader));

    /// Carries out the writes as one.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails; it is then unknown what was written.
    fn write(&self, writes: &Writes) -> Result<(), StoreError>;

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    fn flush(&self) -> Result<(), StoreError>;

    /// Lets what is not durable fill so many percent of the memory that it may fill otherwise; from now on, also
    /// in rows that are received.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    fn limit_buffers(&self, percent: u32) -> Result<(), StoreError>;

    /// Keeps a durable copy of the rows as they are now, in place of the one before.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    fn capture(&self) -> Result<Arc<dyn SharedReader>, StoreError>;

    /// The copy that the last [`StateStore::capture`] kept, also of an earlier process; none since an
    /// [`Incoming::install`].
    fn captured(&self) -> Option<Arc<dyn SharedReader>>;

    /// Begins to receive rows that will replace all there are.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    fn receive(&self) -> Result<Box<dyn Incoming>, StoreError>;

    /// How it stands, where it can tell.
    fn figures(&self) -> Option<StoreFigures> {
        None
    }
}

/// Rows on their way in; dropped, they leave no trace.
pub trait Incoming: Send {
    /// Adds rows.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    fn write(&mut self, writes: &Writes) -> Result<(), StoreError>;

    /// The rows received so far.
    fn reader(&self) -> &dyn Reader;

    /// Makes the rows durable and puts them in place of all there were, by one rename. The captured copy
    /// goes before that: it is of rows that may have been replaced because they were wrong.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    fn install(self: Box<Self>) -> Result<(), StoreError>;
}
