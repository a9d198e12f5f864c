//! The threads of a replica beside its runtime, so that its end can wait for theirs.
//!
//! They hold the stores. A process that exits while one of them still closes RocksDB aborts instead
//! of giving its exit status.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The threads of one replica; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Threads {
    handles: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Threads {
    /// Starts a thread.
    ///
    /// # Errors
    /// [`io::Error`] when the system has none to give.
    pub(crate) fn spawn(
        &self,
        name: String,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let handle = std::thread::Builder::new().name(name).spawn(work)?;
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.push(handle);
        Ok(())
    }

    /// Waits until all have ended.
    pub(crate) fn join(&self) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        for handle in handles.drain(..) {
            if handle.join().is_err() {
                tracing::error!("a thread of the replica had panicked");
            }
        }
    }
}
