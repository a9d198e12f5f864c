//! Whether the cluster serves.

use flotilla_client::{Client, v1};
use std::time::{Duration, Instant};

/// How long one call may take.
const QUESTION: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(25);
/// How long to wait at most; a cluster that takes longer does not recover.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until the cluster acknowledges a write, and returns how long that took; `None` if it does
/// not.
pub(crate) async fn await_service(client: &Client) -> Option<Duration> {
    let started = Instant::now();
    let client = client.with_timeout(QUESTION);
    while started.elapsed() < TIMEOUT {
        let probe = v1::SetKeyRequest {
            key: "jepsen-probe".to_owned(),
            value: "served".into(),
            ..v1::SetKeyRequest::default()
        };
        if client.set_key(probe).await.is_ok() {
            return Some(started.elapsed());
        }
        tokio::time::sleep(PAUSE).await;
    }
    None
}
