//! Whether the cluster serves this node: when a leader last confirmed, with a quorum, what is committed.
//!
//! A follower that hears heartbeats knows nothing of the quorum behind them, and one that hears none is told
//! by nobody. So each node asks for a read index now and then, as its readers do, and remembers the answer.

use crate::core::Core;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// When a leader last confirmed to this node what is committed.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    // A std mutex and not tokio's because it is never held across an await.
    confirmed: Mutex<Option<Instant>>,
}

impl Pulse {
    /// A leader has confirmed it now.
    pub(crate) fn beat(&self) {
        *self.lock() = Some(Instant::now());
    }

    fn is_within(&self, time: Duration) -> bool {
        self.lock().is_some_and(|at| at.elapsed() < time)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        // Every change is one assignment, so a panic elsewhere leaves nothing half done.
        self.confirmed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Whether a leader with a quorum behind it has lately told this node, or itself, what is committed.
    /// That one leader follows another within [`Tuning::leader_patience`](crate::Tuning) changes nothing.
    pub(crate) fn is_led(&self) -> bool {
        self.pulse.is_within(self.tuning.leader_patience())
    }
}

/// Keeps the pulse known while nobody reads, and tells the operator each time that the cluster stops or
/// starts to serve this node.
///
/// openraft tells each heartbeat that nobody answers, several times a second; its own words are for
/// those who look for a bug.
pub(crate) async fn watch_pulse(core: Arc<Core>) {
    let pause = core.tuning.election_max * 2;
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut leadership = core.leadership.subscribe();
    let mut was_led = false;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            changed = leadership.changed() => match changed {
                // Its voters are a quorum, and have just answered.
                Ok(()) if leadership.borrow_and_update().is_self => core.pulse.beat(),
                Ok(()) => {}
                Err(_) => return,
            },
        }
        if core.is_member() && !core.pulse.is_within(pause) {
            // Whether it is confirmed shows in the pulse.
            drop(core.barrier.index(false).await);
        }
        let is_led = core.is_led();
        match (was_led, is_led) {
            (false, true) => tracing::info!("the cluster has a leader"),
            (true, false) => tracing::warn!(
                "no leader with a quorum has answered this node lately: it can neither read nor write"
            ),
            (true, true) | (false, false) => {}
        }
        was_led = is_led;
    }
}
