//! When the next piece of work begins, and whether there is one.

use super::flags::Pace;
use super::pacer;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Times that have come and that nobody has taken: beyond, the pacer waits, and the times stay what they are.
const DUES_MAX: usize = 65_536;

/// When the next piece of work begins. Shared by all clients.
#[derive(Debug)]
pub(super) struct Schedule {
    dues: Dues,
    /// How many were begun.
    begun: AtomicU64,
    stop: CancellationToken,
}

#[derive(Debug)]
enum Dues {
    /// Whenever somebody asks.
    AtOnce,
    /// As they come. tokio's mutex: it is held while the next one is waited for.
    Planned(Mutex<mpsc::Receiver<Instant>>),
}

impl Schedule {
    /// The schedule of a pace. It begins now, and ends when it is stopped.
    pub(super) fn begin(pace: Pace, stop: CancellationToken) -> Self {
        let Pace::Open(rate) = pace else {
            return Self::new(Dues::AtOnce, stop);
        };
        let (sender, dues) = mpsc::channel(DUES_MAX);
        let stopped = stop.clone();
        std::thread::spawn(move || pacer::pace(rate, &sender, &stopped));
        Self::planned(dues, stop)
    }

    /// The schedule of these times.
    pub(super) fn planned(dues: mpsc::Receiver<Instant>, stop: CancellationToken) -> Self {
        Self::new(Dues::Planned(Mutex::new(dues)), stop)
    }

    fn new(dues: Dues, stop: CancellationToken) -> Self {
        Self {
            dues,
            begun: AtomicU64::new(0),
            stop,
        }
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
        Some((self.begun.fetch_add(1, Ordering::Relaxed), due))
    }

    async fn due(&self) -> Option<Instant> {
        match &self.dues {
            Dues::AtOnce => (!self.stop.is_cancelled()).then(Instant::now),
            Dues::Planned(dues) => tokio::select! {
                biased;
                () = self.stop.cancelled() => None,
                due = async { dues.lock().await.recv().await } => due,
            },
        }
    }

    /// How many times have come that nobody has taken.
    pub(super) async fn waiting(&self) -> u64 {
        match &self.dues {
            Dues::AtOnce => 0,
            Dues::Planned(dues) => {
                let waiting = dues.lock().await.len();
                u64::try_from(waiting).unwrap_or(u64::MAX)
            }
        }
    }
}
