//! Ended runs whose time is over are forgotten (W4).

use super::Driver;
use crate::limits::RETRY_DELAY_MIN;
use flotilla_engine::ids::Namespace;
use flotilla_engine::view::{self, Expired};
use flotilla_engine::{Body, Command, SweepRuns};
use std::time::Duration;
use tokio::time::sleep;

/// The driver looks at least this often: what ends while it sleeps may be kept for less time than
/// what it sleeps for.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// Sweeps in bounded pieces while anything has expired, then sleeps until something may have.
pub(super) async fn drive(driver: &Driver) {
    let mut before = Expired::default();
    loop {
        let now_ms = driver.context.gateway.replica().now_ms();
        let expired = look(driver, now_ms);
        if !expired.is_due {
            sleep(until_next(&expired, now_ms)).await;
        } else if !sweep(driver).await || expired == before {
            // The log's time may stand still, or be behind this node's clock: sweeping as fast as
            // entries are written would not make it run.
            sleep(RETRY_DELAY_MIN).await;
        }
        before = expired;
    }
}

fn look(driver: &Driver, now_ms: u64) -> Expired {
    let read = driver
        .context
        .gateway
        .read_here(|reader| view::expired(reader, now_ms));
    read.unwrap_or_else(|refusal| {
        tracing::warn!(%refusal, "expired runs could not be read");
        Expired::default()
    })
}

/// Whether the sweep was accepted.
async fn sweep(driver: &Driver) -> bool {
    let body = Body::SweepRuns(SweepRuns {});
    let command = Command::new(Namespace::default_namespace(), body);
    match driver.submit(command).await {
        Ok(_) => true,
        Err(refusal) => {
            tracing::debug!(%refusal, "expired runs were not swept");
            false
        }
    }
}

fn until_next(expired: &Expired, now_ms: u64) -> Duration {
    let next = expired
        .next_due_ms
        .map(|due_ms| Duration::from_millis(due_ms.saturating_sub(now_ms).max(1)));
    next.map_or(SLEEP_MAX, |next| next.min(SLEEP_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_sleeps_until_the_next_end_of_a_retention_and_never_for_long() {
        let wait = |next_due_ms| {
            let expired = Expired {
                is_due: false,
                next_due_ms,
            };
            until_next(&expired, 1_000)
        };
        assert_eq!(wait(Some(1_250)), Duration::from_millis(250));
        assert_eq!(wait(Some(900)), Duration::from_millis(1));
        assert_eq!(wait(Some(1_000_000)), SLEEP_MAX);
        assert_eq!(wait(None), SLEEP_MAX);
    }
}
