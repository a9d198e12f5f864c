//! What is past its time is removed: request ids (design rule 9), keys (A40).

use super::Driver;
use flotilla_engine::ids::Namespace;
use flotilla_engine::limits::REQUEST_RETRY_MS;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{Body, Command, SweepKeys, SweepRequests, view};
use std::time::Duration;
use tokio::time::sleep;

/// Sweeps whenever something may have expired, in bounded pieces until nothing is left.
pub(super) async fn drive(driver: &Driver) {
    loop {
        let requests = Body::SweepRequests(SweepRequests {});
        sweep(driver, requests, view::has_expired_requests).await;
        sweep(
            driver,
            Body::SweepKeys(SweepKeys {}),
            view::has_expired_keys,
        )
        .await;
        sleep(Duration::from_millis(REQUEST_RETRY_MS / 4)).await;
    }
}

async fn sweep(
    driver: &Driver,
    body: Body,
    has_expired: fn(&dyn Reader, u64) -> Result<bool, StoreError>,
) {
    let gateway = &driver.context.gateway;
    loop {
        let now_ms = gateway.replica().now_ms();
        let has_expired = gateway.read_here(|reader| has_expired(reader, now_ms));
        if !has_expired.unwrap_or(false) {
            return;
        }
        let command = Command::new(Namespace::default_namespace(), body.clone());
        if let Err(refusal) = driver.submit(command).await {
            tracing::debug!(%refusal, "what has expired was not swept");
            return;
        }
    }
}
