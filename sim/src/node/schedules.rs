//! Fires schedules.

use super::drivers::{Driver, PAUSE};
use flotilla_engine::view::DueCursor;

/// Schedules that are fired together.
const BATCH_MAX: usize = 8;

/// Fires what is due, then sleeps until something is.
pub(super) async fn drive(driver: &Driver) {
    loop {
        let now_ms = driver.replica.now_ms();
        let due = driver.read(|view| DueCursor::default().due_schedules(view, now_ms, BATCH_MAX));
        let due = due.unwrap_or_default();
        let mut is_anything_due = false;
        for schedule in &due.schedules {
            let command = flotilla_dsl::schedule::command(schedule, now_ms);
            let command = command.expect("the only schedule here has an interval");
            if let Some(body) = command {
                is_anything_due = true;
                if driver.submit(body).await.is_none() {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        if !is_anything_due {
            driver.sleep_until(due.next_due_ms).await;
        }
    }
}
