//! The storage of log and state, and the lock of the data directory: what a replica needs of them.

use crate::log::device::LogDevice;
use crate::state::store::StateStore;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Why a directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process, or another replica of this one, has it open.
    #[error("it is in use by another process")]
    InUse,
    /// Durable bytes were changed after they were written.
    #[error("it is corrupt: {0}")]
    Corrupt(String),
    /// A file is missing, without which its data might be taken for leftovers. Nothing was changed.
    #[error("it is incomplete: {0}")]
    Incomplete(String),
    /// A restore of a backup into it was interrupted.
    #[error("the restore of a backup into it was interrupted")]
    HalfRestored,
    /// The store failed for another reason.
    #[error("{0}")]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Locks a data directory until it is dropped.
pub type DirectoryLock = Box<dyn Send + Sync>;

/// The figures of an LSM-tree store; sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Its files on disk.
    pub files_bytes: u64,
    /// Data in memtables, not yet flushed to files.
    pub buffers_bytes: u64,
    /// The size of its block cache.
    pub cache_bytes: u64,
    /// The estimated bytes pending compaction.
    pub compaction_pending_bytes: u64,
    /// Running compactions.
    pub compactions_running: u64,
    /// The estimated number of rows.
    pub rows: u64,
    /// Whether it stops writes until compactions have caught up.
    pub is_stalled: bool,
}

/// The file system of a data directory; sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// What this process may still write.
    pub free_bytes: u64,
    /// The total size.
    pub bytes: u64,
}

/// The storage of log and state.
pub trait Storage: Send + Sync + 'static {
    /// Creates the data directory if it is missing, and locks it.
    ///
    /// # Errors
    /// [`io::Error`] if it cannot be used; of the kind `WouldBlock` if it is locked.
    fn lock(&self, data_directory: &Path) -> io::Result<DirectoryLock>;

    /// Opens or creates the log of a data directory.
    ///
    /// # Errors
    /// [`StorageError`] if it cannot be used.
    fn open_log(&self, data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError>;

    /// Opens or creates the state of a data directory.
    ///
    /// # Errors
    /// [`StorageError`] if it cannot be used.
    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError>;

    /// The free space; `None` if it is unlimited.
    ///
    /// # Errors
    /// [`io::Error`] if the file system does not report it.
    fn space(&self, data_directory: &Path) -> io::Result<Option<DiskSpace>> {
        let _ = data_directory;
        Ok(None)
    }
}
