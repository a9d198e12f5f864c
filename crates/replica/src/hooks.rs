//! What the world around a replica provides: the seams of design rule 15 that its user fills.

use crate::clock::{Clock, SystemClock};
use crate::execution::Execution;
use crate::network::transport::{GrpcTransport, Transport};
use crate::storage::{RocksStorage, Storage};
use flotilla_engine::Offer;
use std::sync::Arc;

/// The open polls of workers that are connected to this node (design rule 3).
pub trait OfferSource: Send + Sync + 'static {
    /// What the next entry may assign tasks to: at most `ENTRY_OFFERS_MAX` offers of at most
    /// `bytes_max` encoded bytes together; what is over is left out of the entry. Asked once an
    /// entry, at the leader only, and must not block.
    fn take(&self, bytes_max: usize) -> Vec<Offer>;
}

/// No worker waits here.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOffers;

impl OfferSource for NoOffers {
    fn take(&self, _bytes_max: usize) -> Vec<Offer> {
        Vec::new()
    }
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
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            offers: Arc::new(NoOffers),
            clock: Arc::new(SystemClock::default()),
            transport: Arc::new(GrpcTransport),
            storage: Arc::new(RocksStorage),
            execution: Execution::default(),
        }
    }
}
