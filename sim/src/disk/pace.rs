//! How long a machine's disk and processor take.

use crate::random::Random;
use flotilla_replica::{Chore, Pace};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a machine's disk and processor take.
pub(crate) struct DiskPace {
    random: Mutex<Random>,
    /// What a slow machine adds at most to a piece of work, in milliseconds.
    slowness_ms: AtomicU64,
}

impl DiskPace {
    /// A machine that is not slow.
    pub(crate) fn new(random: Random) -> Self {
        Self {
            random: Mutex::new(random),
            slowness_ms: AtomicU64::new(0),
        }
    }

    /// Every piece of work takes up to so many milliseconds longer from now on.
    pub(crate) fn slow_down(&self, slowness_ms: u64) {
        self.slowness_ms.store(slowness_ms, Ordering::Relaxed);
    }
}

impl Pace for DiskPace {
    fn duration(&self, chore: Chore) -> Duration {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let slowness_ms = self.slowness_ms.load(Ordering::Relaxed);
        let usual_ms = match chore {
            Chore::LogWrite => random.within(0..3),
            // Most entries are applied within the millisecond.
            Chore::Apply => u64::from(random.chance(50)),
            Chore::LogRead | Chore::SnapshotPart => random.within(0..2),
            Chore::Capture => random.within(1..20),
        };
        Duration::from_millis(usual_ms + random.within(0..slowness_ms + 1))
    }
}
