//! What is past its time is removed: request ids (design rule 9), keys (A40).

use super::Driver;
use crate::limits::{SWEEP_INTERVAL, SWEEP_PAUSE};
use flotilla_engine::ids::Namespace;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::{self, KeyCursor};
use flotilla_engine::{Body, Command, SweepKeys, SweepRequests};
use tokio::time::sleep;

/// Sweeps whenever something may have expired, in bounded pieces until nothing is left. Nobody waits for it,
/// so there is a pause behind each piece: what ten minutes of load left goes beside the load, not before it.
pub(super) async fn drive(driver: &Driver) {
    let mut keys = KeyCursor::default();
    loop {
        sweep(driver, requests).await;
        sweep(driver, |reader| {
            let from_ms = keys.first_expired_ms(reader)?;
            Ok(from_ms.map(|from_ms| Body::SweepKeys(SweepKeys { from_ms })))
        })
        .await;
        sleep(SWEEP_INTERVAL).await;
    }
}

/// What forgets request ids whose window is over, if there are any.
fn requests(reader: &dyn Reader) -> Result<Option<Body>, StoreError> {
    // What has expired by the log's own time is removed by a sweep for certain.
    let now_ms = view::cluster(reader)?.now_ms;
    let is_due = view::has_expired_requests(reader, now_ms)?;
    Ok(is_due.then_some(Body::SweepRequests(SweepRequests {})))
}

/// Submits the next piece until there is none.
async fn sweep(
    driver: &Driver,
    mut next: impl FnMut(&dyn Reader) -> Result<Option<Body>, StoreError>,
) {
    while let Some(body) = driver.read(&mut next).await {
        let command = Command::new(Namespace::default_namespace(), body);
        if let Err(refusal) = driver.submit(command).await {
            return tracing::debug!(%refusal, "what has expired was not swept");
        }
        sleep(SWEEP_PAUSE).await;
    }
}
