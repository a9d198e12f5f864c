//! The cache of compiled modules.

use crate::compiler::CompiledModule;
use crate::error::Broken;
use crate::limits::MODULES_CACHED_MAX;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The identity of a module's bytes. The caller chooses the digest; the sandbox only compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleDigest(
    /// The digest's bytes.
    pub [u8; 32],
);

/// Compiles each module once and keeps the most recently used ones (A9).
pub(crate) struct ModuleCache {
    slots: Mutex<LruCache<ModuleDigest, Slot>>,
    compilations_count: AtomicU64,
}

/// One module's slot. Its lock is held during compilation, so that a second caller waits for the
/// first one's work, while callers of other modules proceed.
type Slot = Arc<Mutex<Option<Arc<CompiledModule>>>>;

impl ModuleCache {
    pub(crate) fn new() -> Self {
        let capacity = const { NonZeroUsize::new(MODULES_CACHED_MAX).expect("it is not zero") };
        Self {
            slots: Mutex::new(LruCache::new(capacity)),
            compilations_count: AtomicU64::new(0),
        }
    }

    /// The module, compiled now unless it is cached. A failure is not cached: the next call
    /// retries.
    pub(crate) fn get_or_compile(
        &self,
        digest: ModuleDigest,
        compile: impl FnOnce() -> Result<CompiledModule, Broken>,
    ) -> Result<Arc<CompiledModule>, Broken> {
        let slot = Arc::clone(lock(&self.slots).get_or_insert(digest, Slot::default));
        let mut slot = lock(&slot);
        if let Some(module) = &*slot {
            return Ok(Arc::clone(module));
        }
        let module = Arc::new(compile()?);
        self.compilations_count.fetch_add(1, Ordering::Relaxed);
        *slot = Some(Arc::clone(&module));
        Ok(module)
    }

    /// How many modules were compiled since the start.
    pub(crate) fn compilations_count(&self) -> u64 {
        self.compilations_count.load(Ordering::Relaxed)
    }
}

/// A panic while compiling leaves a slot empty and the map whole, so a poisoned lock is sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
