//! The cache of compiled modules.

use crate::compiler::CompiledModule;
use crate::limits::MODULES_CACHED_MAX;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The identity of a module's bytes. The caller chooses the digest; the sandbox only compares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleDigest(
    /// The digest's bytes.
    pub [u8; 32],
);

/// Keeps the most recently used modules, bounded in count and in bytes of code (A9).
pub(crate) struct ModuleCache {
    kept: Mutex<Kept>,
    bytes_max: usize,
}

struct Kept {
    modules: LruCache<ModuleDigest, Arc<CompiledModule>>,
    /// The code of all modules.
    bytes: usize,
}

/// The compiled code that is in memory. In bytes.
#[derive(Clone, Default)]
pub(crate) struct CodeMeter(Arc<AtomicUsize>);

/// The compiled code of one module, which counts until this is dropped.
pub(crate) struct MeteredCode {
    pub(crate) bytes: usize,
    meter: CodeMeter,
}

impl CodeMeter {
    pub(crate) fn count(&self, bytes: usize) -> MeteredCode {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        MeteredCode {
            bytes,
            meter: self.clone(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for MeteredCode {
    fn drop(&mut self) {
        self.meter.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl ModuleCache {
    /// An empty cache, for at most `bytes_max` bytes of code.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let capacity = const { NonZeroUsize::new(MODULES_CACHED_MAX).expect("it is not zero") };
        let kept = Mutex::new(Kept {
            modules: LruCache::new(capacity),
            bytes: 0,
        });
        Self { kept, bytes_max }
    }

    pub(crate) fn get(&self, digest: ModuleDigest) -> Option<Arc<CompiledModule>> {
        self.lock().modules.get(&digest).cloned()
    }

    /// Adds a module, and evicts others that there is no room for. A module that is being called lives until its last
    /// call has ended.
    pub(crate) fn put(&self, digest: ModuleDigest, module: Arc<CompiledModule>) {
        let mut kept = self.lock();
        kept.bytes += module.code.bytes;
        if let Some((_, replaced)) = kept.modules.push(digest, module) {
            kept.bytes -= replaced.code.bytes;
        }
        while kept.bytes > self.bytes_max
            && let Some((_, evicted)) = kept.modules.pop_lru()
        {
            kept.bytes -= evicted.code.bytes;
        }
    }

    /// A panic leaves the map whole, so a poisoned lock is sound.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
