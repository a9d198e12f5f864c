//! Timers fall due.

use super::{Driver, RETRY_DELAY};
use flotilla_engine::ids::Namespace;
use flotilla_engine::tables::TimerKey;
use flotilla_engine::view::{self, DueTimers};
use flotilla_engine::{Body, Command, FireTimer};
use futures::future::join_all;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Timers of one kind that are fired together.
const BATCH_TIMERS_MAX: usize = 256;

/// Fires what is due, then sleeps until the next deadline or until an earlier timer is set.
pub(super) async fn drive(driver: &Driver) {
    loop {
        driver.signals.look();
        let now_ms = driver.context.gateway.replica().now_ms();
        let due = driver
            .context
            .gateway
            .read_here(move |reader| view::due_timers(reader, now_ms, BATCH_TIMERS_MAX));
        let due = due.unwrap_or_else(|refusal| {
            tracing::warn!(%refusal, "due timers could not be read");
            DueTimers {
                timers: Vec::new(),
                next_due_ms: Some(now_ms + 1_000),
            }
        });
        if due.timers.is_empty() {
            sleep(driver, now_ms, due.next_due_ms).await;
        } else if !fire_all(driver, due.timers).await {
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

/// Fires timers together: they travel in few entries. False when none was accepted, so that a
/// cluster whose time stands still is not flooded.
async fn fire_all(driver: &Driver, timers: Vec<TimerKey>) -> bool {
    let fired = timers.into_iter().map(|timer| {
        let body = Body::FireTimer(FireTimer { timer });
        let command = Command::new(Namespace::default_namespace(), body);
        driver.context.gateway.submit(command, Driver::deadline())
    });
    let results = join_all(fired).await;
    for refusal in results.iter().filter_map(|result| result.as_ref().err()) {
        // Most often the timer was taken back, or is due by this node's clock but not by the log's.
        tracing::debug!(%refusal, "a timer was not fired");
    }
    results.iter().any(Result::is_ok)
}

/// Sleeps until `until_ms`, or until an earlier timer is set; without a deadline only the latter.
async fn sleep(driver: &Driver, now_ms: u64, until_ms: Option<u64>) {
    if !driver.signals.fall_asleep(until_ms) {
        return;
    }
    let Some(until_ms) = until_ms else {
        return driver.signals.armed().await;
    };
    let wait = Duration::from_millis(until_ms.saturating_sub(now_ms).max(1));
    tokio::select! {
        () = sleep_until(Instant::now() + wait) => {}
        () = driver.signals.armed() => {}
    }
}
