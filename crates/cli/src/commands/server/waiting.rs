//! Logs what a node waits for until a leader serves it.

use flotilla_server::Server;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// The time until the first log line: a node that does not have to wait logs none.
const FIRST: Duration = Duration::from_secs(1);
/// The time between two log lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// Logs what a node waits for, every few seconds. Without that, it would seem to hang.
pub(super) async fn tell(node_id: u64, server: &Server) -> Infallible {
    sleep(FIRST).await;
    loop {
        let awaited = server.awaited().await;
        tracing::info!(node = node_id, "the node waits: {awaited}");
        sleep(INTERVAL).await;
    }
}
