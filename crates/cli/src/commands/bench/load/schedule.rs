//! When the next piece of work begins, and whether there is one.

use super::flags::Pace;
use super::pacer;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Times that have come and that nobody has taken: beyond, the pacer waits, and the times stay what they are.
const DUES_MAX: usize = 65_536;

/// What became due no longer ago is about to begin.
const MOMENT: Duration = Duration::from_millis(20);

/// When the next piece of work begins. Shared by all clients.
#[derive(Debug)]
pub(super) struct Schedule {
    dues: Dues,
    /// How many were begun.
    begun: AtomicU64,
    /// How many there are, where that is fixed.
    limit: u64,
    stop: CancellationToken,
}

#[derive(Debug)]
enum Dues {
    /// Whenever somebody asks.
    AtOnce,
    /// So many a second.
    Planned {
        first: Instant,
        rate: u32,
        /// They come here, each in its time. tokio's mutex: it is held while the next one is waited for.
        come: Mutex<mpsc::Receiver<Instant>>,
    },
}

impl Schedule {
    /// The schedule of a pace. It begins now, and ends when it is stopped.
    pub(super) fn begin(pace: Pace, stop: CancellationToken) -> Self {
        let Pace::Open(rate) = pace else {
            return Self::new(Dues::AtOnce, stop);
        };
        let (sender, come) = mpsc::channel(DUES_MAX);
        let (first, stopped) = (Instant::now(), stop.clone());
        std::thread::spawn(move || pacer::pace((first, rate), &sender, &stopped));
        Self::planned((first, rate), come, stop)
    }

    /// The schedule of a rate whose times come as they are due.
    pub(super) fn planned(
        (first, rate): (Instant, u32),
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

    /// The same schedule, with so many pieces at most.
    pub(super) fn limited(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// Whether nothing begins any more.
    pub(super) fn is_over(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Nothing begins any more.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// The next piece: its number, and when it was to begin, which has come. None when nothing begins any more.
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

    /// How many were due, but for the last moment, and have not begun.
    pub(super) fn not_begun(&self) -> u64 {
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
        // The pacer's thread ends.
        self.stop.cancel();
    }
}
