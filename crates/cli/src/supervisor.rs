//! Notifies systemd of the node's state, if systemd has started it (`sd_notify(3)`).

use sd_notify::NotifyState;
use std::time::Duration;

/// The time between two keepalives, as a part of the watchdog's timeout: one may be late.
const KEEPALIVES_PER_TIMEOUT: u32 = 3;

/// What systemd has been told so far cannot be withdrawn, so the calls come in their order: ready, then stopping.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// The timeout of the watchdog, if there is one.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// The supervisor of this process, as its environment describes it.
    pub(crate) fn of_process() -> Self {
        Self {
            watchdog: sd_notify::watchdog_enabled(),
        }
    }

    /// The node serves. From now on, the watchdog gets keepalives while the node `is_live`.
    pub(crate) fn ready(&self, is_live: impl Fn() -> bool + Send + 'static) {
        notify(NotifyState::Ready);
        let Some(timeout) = self.watchdog else {
            return;
        };
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(timeout / KEEPALIVES_PER_TIMEOUT);
            while is_live() {
                notify(NotifyState::Watchdog);
                ticks.tick().await;
            }
        });
    }

    /// The node stops.
    pub(crate) fn stopping(&self) {
        notify(NotifyState::Stopping);
    }
}

/// Sends a notification. Without systemd it does nothing.
fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "systemd was not notified");
    }
}
