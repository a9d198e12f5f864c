//! Tells the operator when the cluster cannot serve, once for each change.
//!
//! openraft tells each heartbeat that nobody answers, several times a second; its own words are for
//! those who look for a bug.

use crate::core::Core;
use std::sync::Arc;
use tokio::time::{MissedTickBehavior, interval};

/// Tells each time that a leader with a quorum is lost or found, as far as this node knows.
///
/// It looks at intervals: that nobody answers is no event.
pub(crate) async fn tell_outages(core: Arc<Core>) {
    let mut ticks = interval(core.tuning.election_max * 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_led = false;
    loop {
        ticks.tick().await;
        let is_led = is_led(&core);
        match (was_led, is_led) {
            (false, true) => tracing::info!("the cluster has a leader"),
            (true, false) => tracing::warn!(
                "the cluster has no leader, or it has lost its quorum: nothing can be written"
            ),
            (true, true) | (false, false) => {}
        }
        was_led = is_led;
    }
}

fn is_led(core: &Core) -> bool {
    // Not held while the metrics are borrowed: see `status::own`.
    let leadership = core.leadership.borrow().clone();
    match leadership.leader {
        Some(_) if leadership.is_self => core.is_leading(),
        Some(_) => true,
        None => false,
    }
}
