//! Fires timers: retries, timeouts, expired leases, workers without a heartbeat.

use super::drivers::{Driver, PAUSE};
use flotilla_engine::TimerKey;
use flotilla_engine::view::TimerCursor;
use flotilla_engine::{Body, FireTimer};
use futures::future::join_all;

/// Timers that are fired together.
const BATCH_MAX: usize = 32;

/// Fires what is due, then sleeps until something is.
pub(super) async fn drive(driver: &Driver) {
    let mut cursor = TimerCursor::default();
    loop {
        let now_ms = driver.replica.now_ms();
        let due = driver.read(|view| cursor.due_timers(view, now_ms, BATCH_MAX));
        let due = due.unwrap_or_default();
        if due.timers.is_empty() {
            driver.sleep_until(due.next_due_ms).await;
            continue;
        }
        let fire = |timer: TimerKey| driver.submit(Body::FireTimer(FireTimer { timer }));
        let fired = join_all(due.timers.into_iter().map(fire)).await;
        if fired.iter().all(Option::is_none) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}
