//! How the pump wakes the drivers.

use flotilla_engine::ids::RunNumber;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Hints from effects; each is only a reason to look at the state.
#[derive(Default)]
pub(super) struct Signals {
    timers: Mutex<Alarm>,
    timers_changed: Notify,
    checks: Mutex<BTreeSet<(RunNumber, u32)>>,
    checks_changed: Notify,
}

/// When the timers' driver looks at the state next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Alarm {
    /// It is looking now: anything that is set meanwhile may have been missed.
    #[default]
    Looking,
    /// As `Looking`, and something was set for this time, in milliseconds.
    Missed(u64),
    /// It sleeps until this time, in milliseconds; `None` for as long as nothing is set.
    Asleep(Option<u64>),
}

impl Signals {
    /// A timer was set for `due_ms`. Wakes the driver only if it would sleep longer.
    pub(super) fn arm(&self, due_ms: u64) {
        let mut alarm = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        match *alarm {
            Alarm::Looking => *alarm = Alarm::Missed(due_ms),
            Alarm::Missed(earliest) => *alarm = Alarm::Missed(earliest.min(due_ms)),
            Alarm::Asleep(until) if until.is_none_or(|until| due_ms < until) => {
                *alarm = Alarm::Missed(due_ms);
                self.timers_changed.notify_one();
            }
            Alarm::Asleep(_) => {}
        }
    }

    /// The driver begins to look at the state.
    pub(super) fn look(&self) {
        *self.timers.lock().unwrap_or_else(PoisonError::into_inner) = Alarm::Looking;
    }

    /// The driver has looked and wants to sleep until `until`; false when something earlier was set
    /// meanwhile, so that it must look again.
    pub(super) fn fall_asleep(&self, until: Option<u64>) -> bool {
        let mut alarm = self.timers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Alarm::Missed(due_ms) = *alarm
            && until.is_none_or(|until| due_ms < until)
        {
            return false;
        }
        *alarm = Alarm::Asleep(until);
        true
    }

    /// Waits until a timer is set that is due before the sleep's end.
    pub(super) async fn armed(&self) {
        self.timers_changed.notified().await;
    }

    /// A child's input waits for a verdict.
    pub(super) fn check(&self, check: (RunNumber, u32)) {
        self.checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(check);
        self.checks_changed.notify_one();
    }

    /// Waits for checks to make.
    pub(super) async fn checks(&self) -> BTreeSet<(RunNumber, u32)> {
        loop {
            let checks =
                std::mem::take(&mut *self.checks.lock().unwrap_or_else(PoisonError::into_inner));
            if !checks.is_empty() {
                return checks;
            }
            self.checks_changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn only_an_earlier_timer_wakes_the_driver() {
        let signals = Signals::default();
        assert!(signals.fall_asleep(Some(100)));
        signals.arm(200);
        assert!(signals.armed().now_or_never().is_none());
        signals.arm(50);
        assert!(signals.armed().now_or_never().is_some());
    }

    #[test]
    fn a_timer_that_is_set_while_the_driver_looks_is_not_missed() {
        let signals = Signals::default();
        signals.look();
        signals.arm(50);
        signals.arm(70);
        assert!(!signals.fall_asleep(Some(100)));
        signals.look();
        assert!(signals.fall_asleep(Some(100)));
    }
}
