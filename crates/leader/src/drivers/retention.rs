//! The retention driver: deletes ended runs whose retention has ended (W4).

use super::Driver;
use super::backoff::Backoff;
use flotilla_engine::view::{self, Expired};
use flotilla_engine::{Command, SweepRuns};

/// Sweeps in bounded batches while anything has expired, then sleeps until something may have.
pub(super) async fn drive(driver: &Driver) {
    let alarm = &driver.wakeups.retention;
    let mut backoff = Backoff::default();
    let mut before = Expired::default();
    loop {
        // The state says where the rows begin; that needs no hint.
        alarm.look();
        let now_ms = driver.now_ms();
        let expired = driver.read(|reader| view::expired(reader, now_ms)).await;
        if !expired.is_due {
            backoff.reset();
            alarm.sleep(now_ms, expired.next_due_ms).await;
        } else if expired != before {
            backoff.reset();
            sweep(driver).await;
        } else {
            // The last sweep did nothing: it was refused, or the log's clock stands still or is
            // behind this node's. Sweeping as fast as entries are written would not change that.
            backoff.wait().await;
            sweep(driver).await;
        }
        before = expired;
    }
}

async fn sweep(driver: &Driver) {
    let command = Command::of_cluster(SweepRuns {});
    if let Err(error) = driver.submit(command).await {
        tracing::debug!(%error, "expired runs were not swept");
    }
}
