//! A disk that takes its time.

use flotilla_replica::{
    DeviceError, DirectoryLock, Durability, Fact, LogDevice, Operation, RecordVisitor, StateStore,
    Storage, StorageError,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A storage whose log is durable only after as many milliseconds as a file says.
pub(super) struct SlowStorage<S> {
    storage: S,
    file: PathBuf,
}

impl<S> SlowStorage<S> {
    pub(super) fn new(storage: S, file: PathBuf) -> Self {
        Self { storage, file }
    }
}

impl<S: Storage> Storage for SlowStorage<S> {
    fn lock(&self, data_directory: &Path) -> io::Result<DirectoryLock> {
        self.storage.lock(data_directory)
    }

    fn open_log(&self, data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError> {
        Ok(Arc::new(SlowLog {
            log: self.storage.open_log(data_directory)?,
            file: self.file.clone(),
        }))
    }

    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        self.storage.open_state(data_directory)
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
    let text = fs::read_to_string(file).unwrap_or_default();
    Duration::from_millis(text.trim().parse().unwrap_or(0))
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
