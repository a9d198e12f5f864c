//! The sweep driver: deletes expired request ids (design rule 9) and keys (A40).

use super::Driver;
use crate::limits::{SWEEP_INTERVAL, SWEEP_PAUSE};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::{self, KeyCursor};
use flotilla_engine::{ClusterScope, Command, Operation, SweepKeys, SweepRequests};
use tokio::time::sleep;

/// Sweeps whenever something may have expired, in bounded batches until nothing is left. No caller
/// waits for it, so it pauses after each batch: ten minutes' worth of expired rows are deleted
/// alongside the load, not ahead of it.
pub(super) async fn drive(driver: &Driver) {
    let mut keys = KeyCursor::default();
    loop {
        let had_requests = sweep(driver, requests).await;
        let had_keys = sweep(driver, |reader| {
            let from_ms = keys.first_expired_ms(reader)?;
            Ok(from_ms.map(|from_ms| SweepKeys { from_ms }))
        })
        .await;
        let is_more_likely = had_requests || had_keys;
        sleep(if is_more_likely {
            SWEEP_PAUSE
        } else {
            SWEEP_INTERVAL
        })
        .await;
    }
}

/// The command that deletes expired request ids, if there are any.
fn requests(reader: &dyn Reader) -> Result<Option<SweepRequests>, StoreError> {
    // A sweep always removes what has expired by the log's own clock.
    let now_ms = view::cluster(reader)?.now_ms;
    let is_due = view::has_expired_requests(reader, now_ms)?;
    Ok(is_due.then_some(SweepRequests {}))
}

/// Submits the next batch, if there is one; returns whether it was swept.
async fn sweep<O: Operation<Scope = ClusterScope>>(
    driver: &Driver,
    next: impl FnMut(&dyn Reader) -> Result<Option<O>, StoreError>,
) -> bool {
    let Some(body) = driver.read(next).await else {
        return false;
    };
    let command = Command::of_cluster(body);
    let swept = driver.submit(command).await;
    if let Err(error) = &swept {
        tracing::debug!(%error, "expired rows were not swept");
    }
    swept.is_ok()
}
