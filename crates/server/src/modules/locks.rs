//! One lock for each module that is being compiled.

use flotilla_wasm::ModuleDigest;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A module's lock.
type Lock = Arc<tokio::sync::Mutex<()>>;

/// The locks of the modules that are being compiled or waited for. Each lives as long as someone keeps it.
#[derive(Default)]
pub(super) struct Locks(Mutex<HashMap<ModuleDigest, Weak<tokio::sync::Mutex<()>>>>);

impl Locks {
    /// The lock of a module.
    pub(super) fn of(&self, digest: ModuleDigest) -> Lock {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(&digest).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Lock::default();
        locks.insert(digest, Arc::downgrade(&lock));
        lock
    }
}
