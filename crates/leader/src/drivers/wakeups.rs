//! The wake-ups that the pump sends to the drivers.

use super::alarm::Alarm;
use flotilla_engine::ids::RunNumber;
use futures::FutureExt;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// An input that waits for its verdict: the parent's run and activation.
pub(crate) type Check = (RunNumber, u64);

/// Hints from effects: each is only a reason to read the state. They are kept only while this node
/// leads, because nothing else drains them.
#[derive(Default)]
pub(crate) struct Wakeups {
    /// Deadlines of new timers.
    pub(crate) timers: Alarm,
    /// New firing times of schedules.
    pub(crate) schedules: Alarm,
    /// Changes in what triggers have to fire.
    pub(crate) triggers: Alarm,
    /// Ended runs that are to be deleted.
    pub(crate) retention: Alarm,
    checks: Mutex<BTreeSet<Check>>,
    checks_changed: Notify,
    lost: Notify,
}

impl Wakeups {
    /// Clears all hints: the drivers restart from the state.
    pub(crate) fn clear(&self) {
        for alarm in [
            &self.timers,
            &self.schedules,
            &self.triggers,
            &self.retention,
        ] {
            alarm.clear();
        }
        self.open_checks().clear();
        // A loss that no driver waited for is cleared as well.
        let _ = self.lost.notified().now_or_never();
    }

    /// Hints were lost: the drivers must restart.
    pub(crate) fn lose(&self) {
        self.lost.notify_one();
    }

    /// Waits until hints were lost.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }

    /// A child run's input waits for a verdict.
    pub(crate) fn check(&self, check: Check) {
        self.open_checks().insert(check);
        self.checks_changed.notify_one();
    }

    /// Waits for checks to make, and takes at most `count_max` of them.
    pub(crate) async fn checks(&self, count_max: usize) -> Vec<Check> {
        loop {
            let checks = self.take_checks(count_max);
            if !checks.is_empty() {
                return checks;
            }
            self.checks_changed.notified().await;
        }
    }

    fn take_checks(&self, count_max: usize) -> Vec<Check> {
        let checks = &mut self.open_checks();
        (0..count_max).map_while(|_| checks.pop_first()).collect()
    }

    fn open_checks(&self) -> MutexGuard<'_, BTreeSet<Check>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn checks_are_taken_in_pieces_and_what_is_left_is_forgotten_with_the_term() {
        let wakeups = Wakeups::default();
        for activation in 0..3 {
            wakeups.check((RunNumber(1), activation));
        }
        assert_eq!(
            wakeups.checks(2).await,
            [(RunNumber(1), 0), (RunNumber(1), 1)]
        );
        wakeups.lose();
        wakeups.clear();
        assert_eq!(wakeups.checks(2).now_or_never(), None);
        assert_eq!(wakeups.lost().now_or_never(), None);
    }
}
