//! How the pump wakes the drivers.

use flotilla_engine::ids::RunNumber;
use futures::FutureExt;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// An input that waits for its verdict: the parent's run and activation.
pub(super) type Check = (RunNumber, u32);

/// Hints from effects; each is only a reason to look at the state. They are kept only while this
/// node leads: nobody else drains them.
#[derive(Default)]
pub(super) struct Signals {
    hints: Mutex<Hints>,
    timers_changed: Notify,
    schedules_changed: Notify,
    checks_changed: Notify,
    lost: Notify,
}

#[derive(Default)]
struct Hints {
    alarm: Alarm,
    checks: BTreeSet<Check>,
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
    /// Forgets all hints: the drivers begin anew, with what the state says.
    pub(super) fn clear(&self) {
        *self.hints() = Hints::default();
        // A loss that nobody waited for is over as well.
        let _ = self.lost.notified().now_or_never();
    }

    /// Hints were lost: the drivers must begin anew.
    pub(super) fn lose(&self) {
        self.lost.notify_one();
    }

    /// Waits until hints were lost.
    pub(super) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// A timer was set for `due_ms`. Wakes the driver only if it would sleep longer.
    pub(super) fn arm(&self, due_ms: u64) {
        let alarm = &mut self.hints().alarm;
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
        self.hints().alarm = Alarm::Looking;
    }

    /// The driver has looked and wants to sleep until `until`; false when something earlier was set
    /// meanwhile, so that it must look again.
    pub(super) fn fall_asleep(&self, until: Option<u64>) -> bool {
        let alarm = &mut self.hints().alarm;
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

    /// A schedule waits for another time than before.
    pub(super) fn wake_schedules(&self) {
        self.schedules_changed.notify_one();
    }

    /// Waits until a schedule waits for another time than before.
    pub(super) async fn schedules_changed(&self) {
        self.schedules_changed.notified().await;
    }

    /// A child's input waits for a verdict.
    pub(super) fn check(&self, check: Check) {
        self.hints().checks.insert(check);
        self.checks_changed.notify_one();
    }

    /// Waits for checks to make, and takes at most so many of them.
    pub(super) async fn checks(&self, count_max: usize) -> Vec<Check> {
        loop {
            let checks = self.take_checks(count_max);
            if !checks.is_empty() {
                return checks;
            }
            self.checks_changed.notified().await;
        }
    }

    fn take_checks(&self, count_max: usize) -> Vec<Check> {
        let checks = &mut self.hints().checks;
        (0..count_max).map_while(|_| checks.pop_first()).collect()
    }

    fn hints(&self) -> MutexGuard<'_, Hints> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[tokio::test]
    async fn checks_are_taken_in_pieces_and_what_is_left_is_forgotten_with_the_term() {
        let signals = Signals::default();
        for activation in 0..3 {
            signals.check((RunNumber(1), activation));
        }
        assert_eq!(
            signals.checks(2).await,
            [(RunNumber(1), 0), (RunNumber(1), 1)]
        );
        signals.lose();
        signals.clear();
        assert_eq!(signals.checks(2).now_or_never(), None);
        assert_eq!(signals.lost().now_or_never(), None);
    }
}
