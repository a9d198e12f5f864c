//! The verdicts of trials.

use crate::limits::{MODULE_FAILURE_KEPT, MODULE_VERDICTS_MAX};
use flotilla_wasm::{Broken, ModuleDigest};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Whether a module can be compiled within the limits.
pub(super) type Verdict = Result<(), Broken>;

/// The verdicts on the most recently used modules. A failure is forgotten after a while: it may have had to do with the
/// machine.
pub(super) struct Verdicts(Mutex<LruCache<ModuleDigest, Given>>);

struct Given {
    verdict: Verdict,
    at: Instant,
}

impl Default for Verdicts {
    fn default() -> Self {
        let capacity = const { NonZeroUsize::new(MODULE_VERDICTS_MAX).expect("it is not zero") };
        Self(Mutex::new(LruCache::new(capacity)))
    }
}

impl Verdicts {
    /// The verdict on a module, if it is known.
    pub(super) fn get(&self, digest: &ModuleDigest) -> Option<Verdict> {
        let mut given = self.lock();
        let Given { verdict, at } = given.get(digest)?;
        if verdict.is_err() && at.elapsed() >= MODULE_FAILURE_KEPT {
            given.pop(digest);
            return None;
        }
        Some(verdict.clone())
    }

    /// Remembers the verdict on a module.
    pub(super) fn put(&self, digest: ModuleDigest, verdict: Verdict) {
        let at = Instant::now();
        self.lock().put(digest, Given { verdict, at });
    }

    /// A panic leaves the map whole, so a poisoned lock is sound.
    fn lock(&self) -> MutexGuard<'_, LruCache<ModuleDigest, Given>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: usize) -> ModuleDigest {
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&number.to_be_bytes());
        ModuleDigest(digest)
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_forgotten_after_a_while_and_successes_are_not() {
        let verdicts = Verdicts::default();
        verdicts.put(digest(1), Ok(()));
        verdicts.put(digest(2), Err(Broken::CompileTime));
        tokio::time::advance(MODULE_FAILURE_KEPT / 2).await;
        assert_eq!(verdicts.get(&digest(1)), Some(Ok(())));
        assert_eq!(verdicts.get(&digest(2)), Some(Err(Broken::CompileTime)));
        tokio::time::advance(MODULE_FAILURE_KEPT / 2).await;
        assert_eq!(verdicts.get(&digest(1)), Some(Ok(())));
        assert_eq!(verdicts.get(&digest(2)), None);
    }

    #[tokio::test]
    async fn the_number_of_verdicts_is_bounded() {
        let verdicts = Verdicts::default();
        for number in 0..=MODULE_VERDICTS_MAX {
            verdicts.put(digest(number), Err(Broken::CompileTime));
        }
        assert_eq!(verdicts.get(&digest(0)), None);
        assert!(verdicts.get(&digest(MODULE_VERDICTS_MAX)).is_some());
    }
}
