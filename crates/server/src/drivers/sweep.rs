//! What is past its time is removed: request ids (design rule 9), keys (A40).

use super::Driver;
use crate::limits::SWEEP_INTERVAL;
use flotilla_engine::ids::Namespace;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{Body, Command, SweepKeys, SweepRequests, view};
use tokio::time::sleep;

/// Sweeps whenever something may have expired, in bounded pieces until nothing is left.
pub(super) async fn drive(driver: &Driver) {
    loop {
        let requests = Body::SweepRequests(SweepRequests {});
        sweep(driver, requests, view::has_expired_requests).await;
        let keys = Body::SweepKeys(SweepKeys {});
        sweep(driver, keys, view::has_expired_keys).await;
        sleep(SWEEP_INTERVAL).await;
    }
}

async fn sweep(
    driver: &Driver,
    body: Body,
    has_expired: fn(&dyn Reader, u64) -> Result<bool, StoreError>,
) {
    // What has expired by the log's own time is removed by a sweep for certain.
    let is_due = |reader: &dyn Reader| has_expired(reader, view::cluster(reader)?.now_ms);
    while driver.read(is_due).await {
        let command = Command::new(Namespace::default_namespace(), body.clone());
        if let Err(refusal) = driver.submit(command).await {
            return tracing::debug!(%refusal, "what has expired was not swept");
        }
    }
}
