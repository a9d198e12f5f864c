//! Fault injection: a slow or nearly full disk.

use flotilla_replica::{
    DeviceError, DirectoryLock, DiskSpace, Durability, Fact, LogDevice, Operation, RecordVisitor,
    StateStore, Storage, StorageError,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A storage whose log becomes durable only after the number of milliseconds in the file `fsync` of
/// a folder, and whose free space is the number of bytes in the file `free`.
pub(super) struct FaultyStorage<S> {
    storage: S,
    folder: PathBuf,
}

impl<S> FaultyStorage<S> {
    pub(super) fn new(storage: S, folder: PathBuf) -> Self {
        Self { storage, folder }
    }
}

impl<S: Storage> Storage for FaultyStorage<S> {
    fn lock(&self, data_directory: &Path) -> io::Result<DirectoryLock> {
        self.storage.lock(data_directory)
    }

    fn open_log(&self, data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError> {
        Ok(Arc::new(SlowLog {
            log: self.storage.open_log(data_directory)?,
            file: self.folder.join("fsync"),
        }))
    }

    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        self.storage.open_state(data_directory)
    }

    fn space(&self, data_directory: &Path) -> io::Result<Option<DiskSpace>> {
        let space = self.storage.space(data_directory)?;
        let free_bytes = number(&self.folder.join("free"));
        Ok(space.map(|space| DiskSpace {
            free_bytes: free_bytes.unwrap_or(space.free_bytes),
            ..space
        }))
    }
}

struct SlowLog {
    log: Arc<dyn LogDevice>,
    file: PathBuf,
}

impl LogDevice for SlowLog {
    fn facts(&self) -> Result<BTreeMap<Fact, Vec<u8>>, DeviceError> {
        self.log.facts()
    }

    fn read(&self, from: u64, to: u64, visitor: RecordVisitor<'_>) -> Result<(), DeviceError> {
        self.log.read(from, to, visitor)
    }

    fn write(&self, operations: &[Operation], durability: Durability) -> Result<(), DeviceError> {
        self.log.write(operations, durability)?;
        if durability == Durability::Synced {
            stand_still(delay(&self.file));
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a slow disk holds up the log's own thread, and there is no event to wait for"
)]
fn stand_still(time: Duration) {
    thread::sleep(time);
}

fn delay(file: &Path) -> Duration {
    Duration::from_millis(number(file).unwrap_or(0))
}

/// The number in a file, if the file exists and holds one.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_as_slow_as_its_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fsync");
        assert_eq!(delay(&file), Duration::ZERO);
        fs::write(&file, "250\n").unwrap();
        assert_eq!(delay(&file), Duration::from_millis(250));
    }
}
