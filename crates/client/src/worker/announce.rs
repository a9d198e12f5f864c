//! How a worker that drains of its own accord tells the registry so (A20).

use crate::client::Client;
use flotilla_api::v1;
use std::time::Duration;

/// How long it may take. Short, since nothing depends on it.
const ANNOUNCEMENT: Duration = Duration::from_secs(1);

/// Has the registry show that the worker drains; a newer process of the same worker is left alone.
pub(crate) async fn announce_drain(client: Client, worker_id: String, incarnation: u64) {
    let request = v1::DrainRequest {
        worker_id,
        incarnation: Some(incarnation),
        ..v1::DrainRequest::default()
    };
    let client = client.with_timeout(ANNOUNCEMENT);
    if let Err(error) = client.drain_worker(request).await {
        tracing::info!(%error, "the registry does not show that the worker drains");
    }
}
