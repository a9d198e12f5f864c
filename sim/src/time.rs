//! Simulated time, and the clocks of the machines.

use flotilla_replica::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The wall clocks' time at the start of the simulation, in milliseconds.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// How much simulated time has passed; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Time {
    now_ms: Arc<AtomicU64>,
}

impl Time {
    /// Milliseconds since the simulation began.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Lets a millisecond pass.
    pub(crate) fn tick(&self) {
        self.now_ms.fetch_add(1, Ordering::Relaxed);
    }
}

/// The clocks of one machine. They survive its crashes.
#[derive(Debug)]
pub(crate) struct MachineClock {
    time: Time,
    offset_ms: AtomicI64,
}

impl MachineClock {
    /// Correct clocks.
    pub(crate) fn new(time: Time) -> Self {
        Self {
            time,
            offset_ms: AtomicI64::new(0),
        }
    }

    /// Sets the offset of the wall clock, in milliseconds.
    pub(crate) fn jump(&self, offset_ms: i64) {
        self.offset_ms.store(offset_ms, Ordering::Relaxed);
    }
}

impl Clock for MachineClock {
    fn wall_ms(&self) -> u64 {
        let right_ms = EPOCH_MS + self.time.now_ms();
        right_ms.saturating_add_signed(self.offset_ms.load(Ordering::Relaxed))
    }

    fn monotonic_ms(&self) -> u64 {
        self.time.now_ms()
    }
}
