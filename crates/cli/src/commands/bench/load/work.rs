//! What a load consists of.

use super::meter::Meter;
use crate::failure::Failure;
use flotilla_client::Client;
use std::sync::Arc;
use tokio::time::Instant;

/// Something that is done over and over.
pub(in super::super) trait Work: Send + Sync + 'static {
    /// What is there before it begins.
    type Prepared: Send;

    /// What has to be there before it begins, and is not measured.
    fn prepare(
        &self,
        piece: &Piece,
    ) -> impl Future<Output = Result<Self::Prepared, Failure>> + Send;

    /// Does it, checks what came of it, and says when that was over which its latency is of.
    fn perform(
        &self,
        piece: &Piece,
        prepared: Self::Prepared,
    ) -> impl Future<Output = Result<Instant, Failure>> + Send;
}

/// One time that it is done.
#[derive(Debug)]
pub(in super::super) struct Piece {
    /// Calls the cluster.
    pub(in super::super) client: Client,
    /// How many began before it.
    pub(in super::super) number: u64,
    /// When it was to begin: latencies count from here.
    pub(in super::super) due: Instant,
    /// Where parts of it are noted that have a latency of their own.
    pub(in super::super) meter: Arc<Meter>,
}

impl Piece {
    /// When whatever it waits for is given up.
    pub(in super::super) fn deadline(&self) -> Instant {
        Instant::now() + self.client.timeout()
    }
}
