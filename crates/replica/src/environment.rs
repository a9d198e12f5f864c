//! The environment of a replica: clock, storage, transport and threads, which its user provides
//! (design rule 15).

use crate::clock::{Clock, SystemClock};
use crate::execution::Execution;
use crate::inspection::{Inspector, NoInspector};
use crate::network::transport::{GrpcTransport, Transport};
use crate::rocks_storage::RocksStorage;
use crate::storage::Storage;
use flotilla_engine::{Entry, Offer, Rejection, Reply};
use std::sync::Arc;
use std::time::Duration;

/// The open polls of workers that are connected to this node (design rule 3).
pub trait OfferSource: Send + Sync + 'static {
    /// Offers for the next entry, which holds `commands_count` commands: at most `ENTRY_OFFERS_MAX`
    /// offers of at most `bytes_max` encoded bytes in total; the excess is left out of the entry.
    /// Called once per entry, at the leader only, and must not block.
    fn take(&self, commands_count: usize, bytes_max: usize) -> Vec<Offer>;

    /// Returns offers that were taken for an entry but are in none, each as a poll and its number of slots: the entry was
    /// not proposed, or they did not fit. Offers of an entry that is applied come back with its
    /// [`AppliedBatch`](crate::AppliedBatch).
    fn return_offers(&self, offers: &[(u64, u32)]);
}

/// No workers are connected here.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOffers;

impl OfferSource for NoOffers {
    fn take(&self, _commands_count: usize, _bytes_max: usize) -> Vec<Offer> {
        Vec::new()
    }

    fn return_offers(&self, _offers: &[(u64, u32)]) {}
}

/// Receives what a replica does, for metrics. The replica's threads wait for each call, so it must
/// be quick.
pub trait Observer: Send + Sync + 'static {
    /// The engine has executed an entry's commands: one reply each, in order. Called again after a
    /// restart, for entries that it replays.
    fn commands_applied(&self, entry: &Entry, replies: &[Result<Reply, Rejection>]);

    /// An entry of any kind was applied in `time`, and wrote `written_bytes` of state.
    fn entry_applied(&self, time: Duration, written_bytes: usize);

    /// A batch was written to the log and made durable, in `time`.
    fn log_synced(&self, time: Duration);
}

/// Discards all observations.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn commands_applied(&self, _: &Entry, _: &[Result<Reply, Rejection>]) {}

    fn entry_applied(&self, _: Duration, _: usize) {}

    fn log_synced(&self, _: Duration) {}
}

/// The environment of a replica.
#[derive(Clone)]
pub struct Environment {
    /// Open polls of workers.
    pub offers: Arc<dyn OfferSource>,
    /// The machine's clocks.
    pub clock: Arc<dyn Clock>,
    /// Connects to the peers.
    pub transport: Arc<dyn Transport>,
    /// The storage of log and state.
    pub storage: Arc<dyn Storage>,
    /// The threads or tasks that run it.
    pub execution: Execution,
    /// Receives its observations.
    pub observer: Arc<dyn Observer>,
    /// Says what waits on its node.
    pub inspector: Arc<dyn Inspector>,
}

impl Default for Environment {
    fn default() -> Self {
        Self {
            offers: Arc::new(NoOffers),
            clock: Arc::new(SystemClock::default()),
            transport: Arc::new(GrpcTransport::default()),
            storage: Arc::new(RocksStorage),
            execution: Execution::default(),
            observer: Arc::new(NoObserver),
            inspector: Arc::new(NoInspector),
        }
    }
}
