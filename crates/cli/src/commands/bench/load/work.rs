//! The operation that a load repeats.

use super::meter::Meter;
use crate::failure::Failure;
use flotilla_client::Client;
use std::sync::Arc;
use tokio::time::Instant;

/// An operation to repeat.
pub(in super::super) trait Work: Send + Sync + 'static {
    /// What is prepared before the operation begins.
    type Prepared: Send;

    /// Prepares the operation; not measured.
    fn prepare(
        &self,
        piece: &Piece,
    ) -> impl Future<Output = Result<Self::Prepared, Failure>> + Send;

    /// Performs the operation, checks its result, and returns the time at which the measured
    /// latency ends.
    fn perform(
        &self,
        piece: &Piece,
        prepared: Self::Prepared,
    ) -> impl Future<Output = Result<Instant, Failure>> + Send;
}

/// One execution of the operation.
#[derive(Debug)]
pub(in super::super) struct Piece {
    /// The client that calls the cluster.
    pub(in super::super) client: Client,
    /// The number of operations that began before it.
    pub(in super::super) number: u64,
    /// The scheduled start, from which latencies count.
    pub(in super::super) due: Instant,
    /// Where stages with separate latencies are recorded.
    pub(in super::super) meter: Arc<Meter>,
}

impl Piece {
    /// The deadline of anything that it waits for.
    pub(in super::super) fn deadline(&self) -> Instant {
        Instant::now() + self.client.timeout()
    }
}
