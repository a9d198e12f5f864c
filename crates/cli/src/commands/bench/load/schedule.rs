//! When the next operation begins, if there is one.

use super::flags::Pace;
use super::pacer;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The maximum number of due start times in the queue; beyond it the pacer waits, and the times do
/// not change.
const DUES_MAX: usize = 65_536;

/// Operations that became due more recently than this are about to begin.
const MOMENT: Duration = Duration::from_millis(20);

/// When the next operation begins. All clients share it.
#[derive(Debug)]
pub(super) struct Schedule {
    dues: Dues,
    /// The number of operations that have begun.
    begun: AtomicU64,
    /// The maximum number of operations, if fixed.
    limit: u64,
    stop: CancellationToken,
}

#[derive(Debug)]
enum Dues {
    /// Immediately (closed loop).
    AtOnce,
    /// At this rate per second (open loop).
    Planned {
        first: Instant,
        rate: u32,
        /// The start times, each sent when it is due. A tokio mutex, because it is held while
        /// waiting for the next one.
        come: Mutex<mpsc::Receiver<Instant>>,
    },
}

impl Schedule {
    /// A schedule for this pace, which begins now and ends when it is stopped.
    pub(super) fn begin(pace: Pace, stop: CancellationToken) -> Self {
        let Pace::Open(rate) = pace else {
            return Self::new(Dues::AtOnce, stop);
        };
        let (sender, come) = mpsc::channel(DUES_MAX);
        let (first, stopped) = (Instant::now(), stop.clone());
        std::thread::spawn(move || pacer::pace(first, rate, &sender, &stopped));
        Self::planned(first, rate, come, stop)
    }

    /// A schedule for a rate, with the times from the pacer.
    pub(super) fn planned(
        first: Instant,
        rate: u32,
        come: mpsc::Receiver<Instant>,
        stop: CancellationToken,
    ) -> Self {
        let come = Mutex::new(come);
        Self::new(Dues::Planned { first, rate, come }, stop)
    }

    fn new(dues: Dues, stop: CancellationToken) -> Self {
        Self {
            dues,
            begun: AtomicU64::new(0),
            limit: u64::MAX,
            stop,
        }
    }

    /// The same schedule, with at most this many operations.
    pub(super) fn limited(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// Whether no further operation begins.
    pub(super) fn is_over(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Ends the schedule: no further operation begins.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// The next operation: its number and its scheduled start, which has come. `None` once the
    /// schedule has ended.
    pub(super) async fn next(&self) -> Option<(u64, Instant)> {
        let due = self.due().await?;
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        (number < self.limit).then_some((number, due))
    }

    async fn due(&self) -> Option<Instant> {
        match &self.dues {
            Dues::AtOnce => (!self.stop.is_cancelled()).then(Instant::now),
            Dues::Planned { come, .. } => tokio::select! {
                biased;
                () = self.stop.cancelled() => None,
                due = async { come.lock().await.recv().await } => due,
            },
        }
    }

    /// The number of operations that are due, except in the last moment, and have not begun.
    pub(super) fn not_started(&self) -> u64 {
        match &self.dues {
            Dues::AtOnce => 0,
            Dues::Planned { first, rate, .. } => {
                let passed = first.elapsed().saturating_sub(MOMENT);
                let due = pacer::count(passed, *rate).min(self.limit);
                due.saturating_sub(self.begun.load(Ordering::Relaxed))
            }
        }
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        // Ends the pacer's thread.
        self.stop.cancel();
    }
}
