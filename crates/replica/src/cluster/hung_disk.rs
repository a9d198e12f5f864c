//! Notices a disk that hangs: a write to the log that does not return.
//!
//! A leader sends heartbeats without its disk, so the others would keep such a leader, and every write would wait until its
//! deadline. So after [`Tuning::sync_yield`] a leader transfers leadership, and after [`Tuning::sync_timeout`] the process
//! ends: a node that cannot write its log cannot vote either, and its supervisor sees that.
//!
//! Time counts in which this task runs: after a pause of the whole process, a write may just not have had the time to
//! return.
//!
//! [`Tuning::sync_yield`]: crate::tuning::Tuning::sync_yield
//! [`Tuning::sync_timeout`]: crate::tuning::Tuning::sync_timeout

use crate::cluster::leadership::Leadership;
use crate::cluster::transfer::Transfers;
use crate::fatal::FatalError;
use crate::lifecycle::Lifecycle;
use crate::log::store::LogStore;
use crate::tuning::Tuning;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// Ticks in the shorter one of the two times.
const TICKS: u32 = 4;

/// What the watch works with.
pub(crate) struct LogWatch {
    pub(crate) log: LogStore,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) transfers: Transfers,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) tuning: Tuning,
}

impl LogWatch {
    /// Watches the writes of the log until one of them takes too long.
    pub(crate) async fn run(self) {
        let tuning = &self.tuning;
        let period = tuning.sync_yield.min(tuning.sync_timeout) / TICKS;
        let mut ticks = interval(period.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut hang = Hang::default();
        loop {
            ticks.tick().await;
            let time = hang.after(period, self.log.progress().waits_after());
            if time >= tuning.sync_timeout {
                return self.lifecycle.fail(FatalError::LogHangs(time));
            }
            if time >= tuning.sync_yield && self.leadership.borrow().is_self {
                tracing::error!(
                    ?time,
                    "a write to the log does not return: leadership is transferred"
                );
                self.transfers.hand_over().await;
            }
        }
    }
}

/// A write that does not return.
#[derive(Default)]
struct Hang {
    /// The number of writes that returned before it.
    waits_after: Option<u64>,
    time: Duration,
}

impl Hang {
    /// For how long it has not returned, another `period` later.
    fn after(&mut self, period: Duration, waits_after: Option<u64>) -> Duration {
        let is_same = waits_after.is_some() && waits_after == self.waits_after;
        self.waits_after = waits_after;
        self.time = if is_same {
            self.time + period
        } else {
            Duration::ZERO
        };
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_write_that_does_not_return_counts() {
        let second = Duration::from_secs(1);
        let mut hang = Hang::default();
        let seen = [
            None,
            Some(4),
            Some(4),
            Some(4),
            Some(5),
            Some(5),
            None,
            None,
        ];
        let times = seen.map(|waits_after| hang.after(second, waits_after).as_secs());
        assert_eq!(times, [0, 0, 1, 2, 0, 1, 0, 0]);
    }
}
