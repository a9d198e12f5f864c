//! Request ids past their window are forgotten (design rule 9).

use super::Driver;
use flotilla_engine::ids::Namespace;
use flotilla_engine::limits::REQUEST_RETRY_MS;
use flotilla_engine::{Body, Command, SweepRequests, view};
use std::time::Duration;
use tokio::time::sleep;

/// Sweeps whenever ids may have expired, in bounded pieces until none is left.
pub(super) async fn drive(driver: &Driver) {
    loop {
        while has_expired(driver) {
            let body = Body::SweepRequests(SweepRequests {});
            let command = Command::new(Namespace::default_namespace(), body);
            if let Err(refusal) = driver.submit(command).await {
                tracing::debug!(%refusal, "old request ids were not swept");
                break;
            }
        }
        sleep(Duration::from_millis(REQUEST_RETRY_MS / 4)).await;
    }
}

fn has_expired(driver: &Driver) -> bool {
    let now_ms = driver.context.gateway.replica().now_ms();
    let read = driver
        .context
        .gateway
        .read_here(move |reader| view::has_expired_requests(reader, now_ms));
    read.unwrap_or(false)
}
