//! The timer driver: fires due timers.

use super::Driver;
use super::backoff::Backoff;
use crate::bug::PlantedBug;
use crate::error::Error;
use crate::limits::TIMERS_BATCH_MAX;
use flotilla_engine::TimerKey;
use flotilla_engine::view::TimerCursor;
use flotilla_engine::{Command, FireTimer};

/// Fires what is due, then sleeps until the next deadline or until an earlier timer is set.
pub(super) async fn drive(driver: &Driver) {
    let mut backoff = Backoff::default();
    let mut cursor = TimerCursor::default();
    loop {
        // An error usually means that the log's clock stands still, or has not yet reached this
        // node's.
        let looked = look(driver, &mut cursor).await;
        backoff.after(looked).await;
    }
}

/// Fires what is due, or sleeps until something may be. An error if nothing due could be fired.
async fn look(driver: &Driver, cursor: &mut TimerCursor) -> Result<(), Error> {
    let alarm = &driver.wakeups.timers;
    // Timers are set for future times, so the cursor needs no hint.
    alarm.look();
    let now_ms = driver.now_ms();
    let mut due = driver
        .read(|reader| cursor.due_timers(reader, now_ms, TIMERS_BATCH_MAX))
        .await;
    if driver.has(PlantedBug::LostTimer) {
        due.timers.retain(|timer| timer.due_ms % 3 != 0);
    }
    let earliest_ms = due.timers.iter().map(|timer| timer.due_ms).min();
    let observer = &driver.context.observer;
    observer.timers_read(earliest_ms.or(due.next_due_ms));
    if due.timers.is_empty() {
        alarm.sleep(now_ms, due.next_due_ms).await;
        return Ok(());
    }
    driver.submit_all(due.timers.into_iter().map(fire)).await
}

fn fire(timer: TimerKey) -> Command<FireTimer> {
    Command::of_cluster(FireTimer { timer })
}
