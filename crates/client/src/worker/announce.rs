//! Announcing a drain to the registry, for a worker that drains by its own decision (A20).

use crate::client::Client;
use flotilla_api::v1;
use std::time::Duration;

/// The timeout of the announcement. Short, because nothing depends on it.
const ANNOUNCEMENT: Duration = Duration::from_secs(1);

/// Makes the registry show that the worker drains; does not affect a newer process with the same
/// worker id.
pub(crate) async fn announce_drain(client: Client, worker_id: String, incarnation: u64) {
    let request = v1::DrainRequest {
        worker_id,
        incarnation: Some(incarnation),
        ..v1::DrainRequest::default()
    };
    let client = client.with_timeout(ANNOUNCEMENT);
    if let Err(error) = client.drain_worker(request).await {
        tracing::info!(%error, "could not announce the drain to the registry");
    }
}
