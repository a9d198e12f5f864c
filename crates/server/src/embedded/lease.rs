//! A task's lease, which the node extends while it holds the task (A4).

use crate::errors::Refusal;
use flotilla_api::v1;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// The delay before an undecided touch is retried.
const TOUCH_AGAIN_DELAY: Duration = Duration::from_millis(100);
/// The minimum pause between touches, even for the shortest lease.
const TOUCH_PAUSE_MIN: Duration = Duration::from_millis(10);

/// A task's lease. It is as long as a call may take, but starts when the task is assigned, before
/// the task arrives here and gets a slot. So it is extended at each third of its length, as outside
/// workers do (A4a): a call has its whole timeout, and its report is still in time.
pub(super) struct Lease {
    length: Duration,
    touch_at: Instant,
}

impl Lease {
    /// The lease of a task that has just arrived, at the cluster's time `now_ms`.
    pub(super) fn of(task: &v1::TaskAssignment, now_ms: u64) -> Self {
        let left_ms = task.lease_expires_at_ms.saturating_sub(now_ms);
        let third_ms = task.lease_ms / 3;
        // Until two thirds are left; a clock that lags must not delay the touch.
        let pause_ms = left_ms.saturating_sub(task.lease_ms - third_ms);
        Self {
            length: Duration::from_millis(task.lease_ms),
            touch_at: Instant::now() + Duration::from_millis(pause_ms.min(third_ms)),
        }
    }

    /// The lease's length from its start or from a touch.
    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// Extends the lease in time, repeatedly. Returns the refusal once the cluster has taken the
    /// task away.
    pub(super) async fn keep<F>(mut self, touch: impl Fn() -> F) -> Refusal
    where
        F: Future<Output = Result<(), Refusal>>,
    {
        loop {
            sleep_until(self.touch_at).await;
            let asked_at = Instant::now();
            match touch().await {
                Ok(()) => self.touch_at = asked_at + (self.length / 3).max(TOUCH_PAUSE_MIN),
                Err(refusal) if refusal.may_succeed_later() => sleep(TOUCH_AGAIN_DELAY).await,
                Err(refusal) => return refusal,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::RejectionCode;
    use std::cell::RefCell;

    fn lease(left_ms: u64) -> Lease {
        let task = v1::TaskAssignment {
            lease_ms: 30_000,
            lease_expires_at_ms: 1_000_000 + left_ms,
            ..v1::TaskAssignment::default()
        };
        Lease::of(&task, 1_000_000)
    }

    fn lost() -> Refusal {
        Refusal::new(
            RejectionCode::ActionRunNotFound,
            "expected a task, but it is gone",
        )
    }

    /// The times of the touches, in milliseconds since the task's arrival; the touches get these
    /// responses in order, and after the last response the lease is lost.
    async fn touches(lease: Lease, answers: Vec<Result<(), Refusal>>) -> Vec<u128> {
        let start = Instant::now();
        let touches = RefCell::new(Vec::new());
        let answers = RefCell::new(answers.into_iter());
        let refusal = lease.keep(|| {
            touches.borrow_mut().push(start.elapsed().as_millis());
            let answer = answers.borrow_mut().next().unwrap_or(Err(lost()));
            async { answer }
        });
        assert_eq!(refusal.await, lost());
        touches.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_touched_at_each_third_of_its_length() {
        let touches = touches(lease(30_000), vec![Ok(()), Ok(())]).await;
        assert_eq!(touches, [10_000, 20_000, 30_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_began_earlier_is_touched_sooner() {
        assert_eq!(touches(lease(25_000), vec![Ok(())]).await, [5_000, 15_000]);
        assert_eq!(touches(lease(0), vec![Ok(())]).await, [0, 10_000]);
        // This node's clock is a minute behind.
        assert_eq!(touches(lease(90_000), vec![]).await, [10_000]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_touch_that_is_not_decided_is_sent_again() {
        let undecided = Refusal::unavailable("expected a response, but none came");
        let touches = touches(lease(30_000), vec![Err(undecided), Ok(())]).await;
        assert_eq!(touches, [10_000, 10_100, 20_100]);
    }
}
