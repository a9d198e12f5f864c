//! The speed of a machine's disk and processor.

use crate::random::Random;
use flotilla_replica::{JobKind, Pace};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The speed of a machine's disk and processor.
pub(crate) struct DiskPace {
    random: Mutex<Random>,
    /// The maximum delay that a slow machine adds to a job, in milliseconds.
    slowness_ms: AtomicU64,
    /// How long the next write to the log hangs, in milliseconds.
    hang_ms: AtomicU64,
}

impl DiskPace {
    /// A machine without delay.
    pub(crate) fn new(random: Random) -> Self {
        Self {
            random: Mutex::new(random),
            slowness_ms: AtomicU64::new(0),
            hang_ms: AtomicU64::new(0),
        }
    }

    /// From now on every job becomes slower by this many milliseconds at most.
    pub(crate) fn slow_down(&self, slowness_ms: u64) {
        self.slowness_ms.store(slowness_ms, Ordering::Relaxed);
    }

    /// The next write to the log takes this many milliseconds longer.
    pub(crate) fn hang_once(&self, hang_ms: u64) {
        self.hang_ms.store(hang_ms, Ordering::Relaxed);
    }
}

impl Pace for DiskPace {
    fn duration(&self, job_kind: JobKind) -> Duration {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let slowness_ms = self.slowness_ms.load(Ordering::Relaxed);
        let usual_ms = match job_kind {
            JobKind::LogWrite => random.within(0..3) + self.hang_ms.swap(0, Ordering::Relaxed),
            // Most entries are applied within the millisecond.
            JobKind::Apply => u64::from(random.chance(50)),
            JobKind::LogRead | JobKind::SnapshotPart | JobKind::Query => random.within(0..2),
            JobKind::Capture => random.within(1..20),
        };
        Duration::from_millis(usual_ms + random.within(0..slowness_ms + 1))
    }
}
