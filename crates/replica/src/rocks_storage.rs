//! The storage in RocksDB: two databases below the data directory.

use crate::completeness::{IncompleteError, check_database};
use crate::framing;
use crate::log::device::LogDevice;
use crate::log::rocks::RocksLog;
use crate::state::fsync::create_directory;
use crate::state::generation::Generation;
use crate::state::rocks::RocksState;
use crate::state::store::StateStore;
use crate::storage::{DirectoryLock, DiskSpace, Storage, StorageError, StoreFigures};
use flotilla_engine::store::StoreError;
use nix::sys::statvfs::statvfs;
use rocksdb::properties;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The process that has locked this file of a data directory owns the directory.
pub(crate) const LOCK: &str = "LOCK";
/// The folder of the log below a data directory.
pub(crate) const LOG: &str = "log";
/// Marks a data directory into which a backup is being restored.
pub(crate) const RESTORING: &str = "RESTORING";

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
        check_restored(data_directory)?;
        let directory = data_directory.join(LOG);
        create_directory(&directory).map_err(failed)?;
        check_framing(&directory)?;
        check_database(&directory).map_err(incomplete)?;
        Ok(Arc::new(RocksLog::open(&directory).map_err(rocks_error)?))
    }

    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        check_state(data_directory)?;
        let state = RocksState::open(data_directory).map_err(store_error)?;
        Ok(Arc::new(state))
    }

    fn space(&self, data_directory: &Path) -> io::Result<Option<DiskSpace>> {
        space(data_directory).map(Some)
    }
}

/// A data directory that is only read.
pub(crate) struct FrozenDirectory {
    pub(crate) log: RocksLog,
    /// The state in use; unset if there is none yet.
    pub(crate) state: Option<Generation>,
    /// Keeps nodes from using the directory; unset if none ever did.
    pub(crate) lock: Option<DirectoryLock>,
}

impl RocksStorage {
    /// Opens a data directory without changing anything in it.
    ///
    /// # Errors
    /// [`StorageError`] if it cannot be used.
    pub(crate) fn open_frozen(
        self,
        data_directory: &Path,
    ) -> Result<FrozenDirectory, StorageError> {
        let lock = lock_existing(data_directory)?;
        check_restored(data_directory)?;
        let directory = data_directory.join(LOG);
        check_framing(&directory)?;
        let log = RocksLog::open_frozen(&directory).map_err(rocks_error)?;
        check_state(data_directory)?;
        Ok(FrozenDirectory {
            log,
            state: RocksState::open_frozen(data_directory).map_err(store_error)?,
            lock,
        })
    }
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

/// Locks a data directory in which the file for that exists.
fn lock_existing(data_directory: &Path) -> Result<Option<DirectoryLock>, StorageError> {
    let file = match File::options().write(true).open(data_directory.join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(Box::new(file))),
        Err(TryLockError::WouldBlock) => Err(StorageError::InUse),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn check_restored(data_directory: &Path) -> Result<(), StorageError> {
    match data_directory.join(RESTORING).try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(StorageError::HalfRestored),
        Err(error) => Err(failed(error)),
    }
}

fn check_state(data_directory: &Path) -> Result<(), StorageError> {
    let mut parts = RocksState::PARTS.into_iter();
    parts.try_for_each(|part| check_framing(&data_directory.join(part)))
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

fn store_error(error: StoreError) -> StorageError {
    let error = match error.0.downcast::<rocksdb::Error>() {
        Ok(error) => return rocks_error(*error),
        Err(error) => error,
    };
    match error.downcast::<IncompleteError>() {
        Ok(error) => incomplete(*error),
        Err(error) => StorageError::Failed(error),
    }
}

fn incomplete(error: IncompleteError) -> StorageError {
    match error {
        IncompleteError::Missing(_) | IncompleteError::NotAName { .. } => {
            StorageError::Incomplete(error.to_string())
        }
        IncompleteError::Io(error) => failed(error),
    }
}

fn failed(error: io::Error) -> StorageError {
    StorageError::Failed(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fsync::tests::is_durable;

    #[test]
    fn the_names_in_a_new_data_directory_are_durable() {
        let directory = tempfile::tempdir().unwrap();
        let lock = RocksStorage.lock(directory.path()).unwrap();
        drop(RocksStorage.open_log(directory.path()).unwrap());
        drop(RocksStorage.open_state(directory.path()).unwrap());
        for name in [LOG, "state"] {
            assert!(is_durable(&directory.path().join(name)), "{name}");
        }
        drop(lock);
    }

    #[test]
    fn a_disk_has_a_size_and_less_room_than_that() {
        let space = space(Path::new(".")).unwrap();
        assert!(space.bytes > 0 && space.free_bytes <= space.bytes);
        assert!(super::space(Path::new("no such directory")).is_err());
    }
}
