//! What the parts of the leader share, and how they start.

use crate::drivers::Driver;
use crate::hub::Hub;
use crate::observer::Observer;
use crate::pump::pump;
use crate::schemas::Schemas;
use crate::term::run_terms;
use flotilla_engine::InitializeAccess;
use flotilla_replica::Replica;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What the parts of the leader share.
pub struct Context {
    /// Submits commands and reads the applied state.
    pub replica: Replica,
    /// The open polls of workers: the replica's source of offers.
    pub hub: Arc<Hub>,
    /// Compiled schemas.
    pub schemas: Arc<Schemas>,
    /// What this node proposes to a new cluster, which has no access mode yet; `None`: nothing.
    pub initial_access: Option<InitializeAccess>,
    /// Receives what the parts do.
    pub observer: Arc<dyn Observer>,
    /// Cancelled when the node stops: ends all parts.
    pub shutdown: CancellationToken,
}

/// Starts the pump and, whenever this node leads, the drivers. The task ends with `context.shutdown`, or with the
/// replica.
pub fn start(context: Context) -> JoinHandle<()> {
    let driver = Driver::new(context);
    let terms = tokio::spawn(run_terms(driver.clone()));
    tokio::spawn(async move {
        pump(&driver).await;
        // The pump ends at shutdown, and so do the terms.
        drop(terms.await);
    })
}
