//! The disk of one machine: it outlives the processes that use it.

use super::log::SimulatedLog;
use super::state::SimulatedState;
use crate::random::Random;
use flotilla_replica::{DirectoryLock, LogDevice, StateStore, Storage, StorageError};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The disk of one machine; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    log: Arc<SimulatedLog>,
    state: SimulatedState,
    /// The lock of the data directory.
    holder: Arc<Mutex<Weak<()>>>,
}

impl Disk {
    /// A disk that reports syncs of the log that it has not done: a planted bug.
    pub(crate) fn lie(&self) {
        self.log.lie();
    }

    /// Makes the power fail during one of the next writes to the log.
    pub(crate) fn fail_soon(&self, random: &mut Random) {
        self.log.fail_soon(random);
    }

    /// Whether the power has failed during a write.
    pub(crate) fn has_failed(&self) -> bool {
        self.log.has_failed()
    }

    /// Cuts and restores the power. Returns how many writes are lost, of log and state.
    pub(crate) fn cut_power(&self, random: &mut Random) -> (u64, u64) {
        (self.log.cut_power(random), self.state.cut_power(random))
    }

    /// How many snapshots were made here, and how many from others were installed.
    pub(crate) fn snapshots(&self) -> (u64, u64) {
        self.state.snapshots()
    }

    /// Forgets past and planned power failures.
    pub(crate) fn repair(&self) {
        self.log.repair();
    }
}

impl Storage for Disk {
    fn lock(&self, _data_directory: &Path) -> io::Result<DirectoryLock> {
        let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        if holder.strong_count() > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let lock = Arc::new(());
        *holder = Arc::downgrade(&lock);
        Ok(Box::new(lock))
    }

    fn open_log(&self, _data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError> {
        Ok(Arc::clone(&self.log) as Arc<dyn LogDevice>)
    }

    fn open_state(&self, _data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        Ok(Arc::new(self.state.clone()))
    }
}
