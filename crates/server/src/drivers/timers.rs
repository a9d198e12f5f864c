//! Timers fall due.

use super::Driver;
use super::backoff::Backoff;
use crate::errors::Refusal;
use crate::limits::TIMERS_BATCH_MAX;
use flotilla_engine::ids::Namespace;
use flotilla_engine::tables::TimerKey;
use flotilla_engine::view::TimerCursor;
use flotilla_engine::{Body, Command, FireTimer};
use futures::future::join_all;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Fires what is due, then sleeps until the next deadline or until an earlier timer is set.
pub(super) async fn drive(driver: &Driver) {
    let mut backoff = Backoff::default();
    let mut cursor = TimerCursor::default();
    loop {
        match look(driver, &mut cursor).await {
            Ok(()) => backoff.reset(),
            Err(refusal) => {
                // Most often the time of the log stands still, or has not come to where this node's
                // clock is.
                tracing::debug!(%refusal, "due timers were not fired");
                backoff.wait().await;
            }
        }
    }
}

/// Fires what is due, or sleeps until something may be. An error when nothing due could be fired.
async fn look(driver: &Driver, cursor: &mut TimerCursor) -> Result<(), Refusal> {
    driver.signals.look();
    let now_ms = driver.context.gateway.replica().now_ms();
    let due = driver
        .context
        .gateway
        .read_here(|reader| cursor.due_timers(reader, now_ms, TIMERS_BATCH_MAX))?;
    if due.timers.is_empty() {
        sleep(driver, now_ms, due.next_due_ms).await;
        return Ok(());
    }
    fire_all(driver, due.timers).await
}

/// Fires timers together: they travel in few entries. An error when none was accepted, so that a
/// cluster whose time stands still is not flooded.
async fn fire_all(driver: &Driver, timers: Vec<TimerKey>) -> Result<(), Refusal> {
    let fired = timers.into_iter().map(|timer| {
        let body = Body::FireTimer(FireTimer { timer });
        driver.submit(Command::new(Namespace::default_namespace(), body))
    });
    let mut refused = None;
    let mut is_any_fired = false;
    for result in join_all(fired).await {
        match result {
            Ok(_) => is_any_fired = true,
            Err(refusal) => refused = Some(refusal),
        }
    }
    match refused {
        Some(refusal) if !is_any_fired => Err(refusal),
        _ => Ok(()),
    }
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
