//! When a driver next reads the state.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Wakes a driver that sleeps until its next deadline when an earlier one is set.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The driver is reading: it may miss whatever is set meanwhile.
    #[default]
    Looking,
    /// As `Looking`, and a deadline was set for this time, in milliseconds.
    Missed(u64),
    /// The driver sleeps until this time, in milliseconds; `None`: until something is set.
    Asleep(Option<u64>),
}

impl Alarm {
    /// Clears what was set.
    pub(crate) fn clear(&self) {
        *self.state() = State::Looking;
    }

    /// Sets the deadline `due_ms`. Wakes the driver only if it would sleep longer.
    pub(crate) fn arm(&self, due_ms: u64) {
        let state = &mut *self.state();
        match *state {
            State::Looking => *state = State::Missed(due_ms),
            State::Missed(earliest) => *state = State::Missed(earliest.min(due_ms)),
            State::Asleep(until) if until.is_none_or(|until| due_ms < until) => {
                *state = State::Missed(due_ms);
                self.changed.notify_one();
            }
            State::Asleep(_) => {}
        }
    }

    /// The driver begins to read the state. Returns the earliest deadline that was set since the
    /// last read and did not wake the driver.
    pub(crate) fn look(&self) -> Option<u64> {
        match std::mem::take(&mut *self.state()) {
            State::Missed(earliest) => Some(earliest),
            State::Looking | State::Asleep(_) => None,
        }
    }

    /// The driver has read the state at `now_ms`. Waits until `until_ms`, or until an earlier
    /// deadline is set; with `None`, until any deadline is set.
    pub(crate) async fn sleep(&self, now_ms: u64, until_ms: Option<u64>) {
        if !self.fall_asleep(until_ms) {
            return;
        }
        let Some(until_ms) = until_ms else {
            return self.changed.notified().await;
        };
        let wait = Duration::from_millis(until_ms.saturating_sub(now_ms).max(1));
        tokio::select! {
            () = sleep(wait) => {}
            () = self.changed.notified() => {}
        }
    }

    /// False if an earlier deadline was set meanwhile: the driver must read again.
    fn fall_asleep(&self, until_ms: Option<u64>) -> bool {
        let state = &mut *self.state();
        if let State::Missed(due_ms) = *state
            && until_ms.is_none_or(|until_ms| due_ms < until_ms)
        {
            return false;
        }
        *state = State::Asleep(until_ms);
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn only_an_earlier_deadline_wakes_the_driver() {
        let alarm = Alarm::default();
        let mut asleep = Box::pin(alarm.sleep(0, Some(100_000)));
        assert_eq!(asleep.as_mut().now_or_never(), None);
        alarm.arm(200_000);
        assert_eq!(asleep.as_mut().now_or_never(), None);
        alarm.arm(50_000);
        asleep.await;
        assert_eq!(alarm.look(), Some(50_000));
        assert_eq!(alarm.look(), None);
    }

    #[tokio::test]
    async fn a_deadline_that_is_set_while_the_driver_looks_is_not_missed() {
        let alarm = Alarm::default();
        assert_eq!(alarm.look(), None);
        alarm.arm(50_000);
        alarm.arm(70_000);
        alarm.sleep(0, Some(100_000)).await;
        assert_eq!(alarm.look(), Some(50_000));
        assert_eq!(alarm.sleep(0, Some(100_000)).now_or_never(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_deadline_the_driver_sleeps_until_there_is_one() {
        let alarm = Alarm::default();
        alarm.sleep(0, Some(100_000)).await;
        assert_eq!(alarm.sleep(0, None).now_or_never(), None);
        alarm.arm(u64::MAX);
        alarm.sleep(0, None).await;
    }
}
