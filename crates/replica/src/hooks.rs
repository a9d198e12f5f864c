//! What the world around a replica provides: the seams of design rule 15 that its user fills.

use crate::clock::{Clock, SystemClock};
use crate::execution::Execution;
use crate::network::transport::{GrpcTransport, Transport};
use crate::storage::{RocksStorage, Storage};
use flotilla_engine::{Entry, Offer, Rejection, Reply};
use std::sync::Arc;
use std::time::Duration;

/// The open polls of workers that are connected to this node (design rule 3).
pub trait OfferSource: Send + Sync + 'static {
    /// What the next entry may assign tasks to, which holds so many commands: at most `ENTRY_OFFERS_MAX`
    /// offers of at most `bytes_max` encoded bytes together; what is over is left out of the entry.
    /// Asked once an entry, at the leader only, and must not block.
    fn take(&self, commands_count: usize, bytes_max: usize) -> Vec<Offer>;
}

/// No worker waits here.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOffers;

impl OfferSource for NoOffers {
    fn take(&self, _commands_count: usize, _bytes_max: usize) -> Vec<Offer> {
        Vec::new()
    }
}

/// Told what a replica does, so that it can be measured. The threads that do it wait for the answer, so
/// it must be quick.
pub trait Observer: Send + Sync + 'static {
    /// The engine has carried out an entry's commands: one answer each, in order. Again after a restart,
    /// for those that it replays.
    fn commands_applied(&self, entry: &Entry, replies: &[Result<Reply, Rejection>]);

    /// An entry of any kind was applied in `time`, and wrote so many bytes of state.
    fn entry_applied(&self, time: Duration, written_bytes: usize);

    /// What waited was written to the log and made durable, in `time`.
    fn log_synced(&self, time: Duration);
}

/// Nobody measures.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn commands_applied(&self, _: &Entry, _: &[Result<Reply, Rejection>]) {}

    fn entry_applied(&self, _: Duration, _: usize) {}

    fn log_synced(&self, _: Duration) {}
}

/// What the world around a replica provides.
#[derive(Clone)]
pub struct Hooks {
    /// Open polls of workers.
    pub offers: Arc<dyn OfferSource>,
    /// The machine's clocks.
    pub clock: Arc<dyn Clock>,
    /// The way to the peers.
    pub transport: Arc<dyn Transport>,
    /// Where log and state are kept.
    pub storage: Arc<dyn Storage>,
    /// Where it runs.
    pub execution: Execution,
    /// Who measures it.
    pub observer: Arc<dyn Observer>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            offers: Arc::new(NoOffers),
            clock: Arc::new(SystemClock::default()),
            transport: Arc::new(GrpcTransport::default()),
            storage: Arc::new(RocksStorage),
            execution: Execution::default(),
            observer: Arc::new(NoObserver),
        }
    }
}
