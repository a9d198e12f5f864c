//! The storage of log and state, and the lock of the data directory.

use crate::framing;
use crate::log::device::LogDevice;
use crate::log::rocks::RocksLog;
use crate::state::rocks::RocksState;
use crate::state::store::StateStore;
use nix::sys::statvfs::statvfs;
use rocksdb::properties;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The process that has locked this file of a data directory owns the directory.
pub(crate) const LOCK: &str = "LOCK";
/// Marks a data directory into which a backup is being restored.
pub(crate) const RESTORING: &str = "RESTORING";

/// Why a directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process, or another replica of this one, has it open.
    #[error("it is in use by another process")]
    InUse,
    /// Durable bytes were changed after they were written.
    #[error("it is corrupt: {0}")]
    Corrupt(String),
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

impl StoreFigures {
    /// The figures of a RocksDB instance; 0 where it reports none.
    pub(crate) fn of(database: &rocksdb::DB) -> Self {
        let figure = |name: &properties::PropName| {
            let figure = database.property_int_value(name).ok().flatten();
            figure.unwrap_or(0)
        };
        Self {
            files_bytes: figure(properties::TOTAL_SST_FILES_SIZE),
            buffers_bytes: figure(properties::CUR_SIZE_ALL_MEM_TABLES),
            cache_bytes: figure(properties::BLOCK_CACHE_USAGE),
            compaction_pending_bytes: figure(properties::ESTIMATE_PENDING_COMPACTION_BYTES),
            compactions_running: figure(properties::NUM_RUNNING_COMPACTIONS),
            rows: figure(properties::ESTIMATE_NUM_KEYS),
            is_stalled: figure(properties::IS_WRITE_STOPPED) > 0,
        }
    }
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

/// Two RocksDB instances below the data directory (design rule 5).
#[derive(Clone, Copy, Debug, Default)]
pub struct RocksStorage;

impl Storage for RocksStorage {
    fn lock(&self, data_directory: &Path) -> io::Result<DirectoryLock> {
        std::fs::create_dir_all(data_directory)?;
        let file = File::create(data_directory.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn open_log(&self, data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError> {
        if data_directory
            .join(RESTORING)
            .try_exists()
            .map_err(failed)?
        {
            return Err(StorageError::HalfRestored);
        }
        let directory = data_directory.join("log");
        std::fs::create_dir_all(&directory).map_err(failed)?;
        check_framing(&directory)?;
        Ok(Arc::new(RocksLog::open(&directory).map_err(rocks_error)?))
    }

    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        Ok(Arc::new(self.open_rocks(data_directory)?))
    }

    fn space(&self, data_directory: &Path) -> io::Result<Option<DiskSpace>> {
        space(data_directory).map(Some)
    }
}

impl RocksStorage {
    /// Opens or creates the state of a data directory.
    pub(crate) fn open_rocks(self, data_directory: &Path) -> Result<RocksState, StorageError> {
        for part in RocksState::PARTS {
            check_framing(&data_directory.join(part))?;
        }
        RocksState::open(data_directory).map_err(|error| {
            match error.0.downcast::<rocksdb::Error>() {
                Ok(error) => rocks_error(*error),
                Err(error) => StorageError::Failed(error),
            }
        })
    }
}

/// The file system of a directory.
fn space(directory: &Path) -> io::Result<DiskSpace> {
    let found = statvfs(directory)?;
    let block = found.fragment_size();
    Ok(DiskSpace {
        free_bytes: found.blocks_available().saturating_mul(block),
        bytes: found.blocks().saturating_mul(block),
    })
}

/// Refuses files on which RocksDB would loop.
fn check_framing(folder: &Path) -> Result<(), StorageError> {
    match framing::find_damage(folder).map_err(failed)? {
        None => Ok(()),
        Some(damage) => Err(StorageError::Corrupt(damage.to_string())),
    }
}

fn rocks_error(error: rocksdb::Error) -> StorageError {
    let text = error.to_string();
    match error.kind() {
        rocksdb::ErrorKind::Corruption => StorageError::Corrupt(text),
        // RocksDB has no separate error kind for a held lock.
        rocksdb::ErrorKind::IOError if text.contains("lock") => StorageError::InUse,
        _ => StorageError::Failed(Box::new(error)),
    }
}

fn failed(error: io::Error) -> StorageError {
    StorageError::Failed(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_a_size_and_less_room_than_that() {
        let space = space(Path::new(".")).unwrap();
        assert!(space.bytes > 0 && space.free_bytes <= space.bytes);
        assert!(super::space(Path::new("no such directory")).is_err());
    }
}
