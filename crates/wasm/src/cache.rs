//! The cache of compiled modules.

use crate::compiler::CompiledModule;
use crate::limits::{MODULES_CACHED_BYTES_MAX, MODULES_CACHED_MAX};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The identity of a module's bytes. The caller chooses the digest; the sandbox only compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleDigest(
    /// The digest's bytes.
    pub [u8; 32],
);

/// Keeps the most recently used modules, bounded in count and in bytes of code (A9).
pub(crate) struct ModuleCache(Mutex<Kept>);

struct Kept {
    modules: LruCache<ModuleDigest, Arc<CompiledModule>>,
    /// The code of all modules.
    bytes: usize,
}

impl ModuleCache {
    pub(crate) fn new() -> Self {
        let capacity = const { NonZeroUsize::new(MODULES_CACHED_MAX).expect("it is not zero") };
        Self(Mutex::new(Kept {
            modules: LruCache::new(capacity),
            bytes: 0,
        }))
    }

    pub(crate) fn get(&self, digest: ModuleDigest) -> Option<Arc<CompiledModule>> {
        self.lock().modules.get(&digest).cloned()
    }

    /// Adds a module, and evicts others that there is no room for. A module that is being called lives until its last
    /// call has ended.
    pub(crate) fn put(&self, digest: ModuleDigest, module: Arc<CompiledModule>) {
        let mut kept = self.lock();
        kept.bytes += module.code_bytes;
        if let Some((_, replaced)) = kept.modules.push(digest, module) {
            kept.bytes -= replaced.code_bytes;
        }
        while kept.bytes > MODULES_CACHED_BYTES_MAX
            && let Some((_, evicted)) = kept.modules.pop_lru()
        {
            kept.bytes -= evicted.code_bytes;
        }
    }

    /// The code of all kept modules. In bytes.
    pub(crate) fn code_bytes(&self) -> usize {
        self.lock().bytes
    }

    /// A panic leaves the map whole, so a poisoned lock is sound.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
