//! A driver's backoff after transient errors.

use crate::error::Error;
use crate::limits::{RETRY_DELAY_MAX, RETRY_DELAY_MIN};
use std::time::Duration;
use tokio::time::sleep;

/// Waits longer after each consecutive error.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            next: RETRY_DELAY_MIN,
        }
    }
}

impl Backoff {
    /// Waits before the next attempt.
    pub(crate) async fn wait(&mut self) {
        let delay = self.next;
        self.next = (2 * delay).min(RETRY_DELAY_MAX);
        sleep(delay).await;
    }

    /// Waits before the next attempt if this one was refused.
    pub(crate) async fn after(&mut self, attempt: Result<(), Error>) {
        match attempt {
            Ok(()) => self.reset(),
            Err(error) => {
                tracing::debug!(%error, "a driver retries later");
                self.wait().await;
            }
        }
    }

    /// Resets the delay after a success.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn the_waits_grow_to_their_bound_and_start_again_after_a_success() {
        let mut backoff = Backoff::default();
        let mut waited = async || {
            let start = Instant::now();
            backoff.wait().await;
            start.elapsed()
        };
        let waits = [waited().await, waited().await, waited().await];
        assert_eq!(waits, [50, 100, 200].map(Duration::from_millis));
        for _ in 0..9 {
            waited().await;
        }
        assert_eq!(waited().await, RETRY_DELAY_MAX);
        backoff.reset();
        assert_eq!(backoff.next, RETRY_DELAY_MIN);
    }
}
