//! A task's lease, and how it is extended while the handler runs (A4, A4a).

use crate::code::ClientCode;
use crate::error::ClientError;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

/// Asks the service to send a touch.
#[derive(Debug)]
pub(super) struct TouchOrder {
    /// The task's id.
    pub(super) task_id: String,
    /// The requested length of the lease, from the time the cluster receives the touch.
    pub(super) extend: Duration,
    /// Receives the cluster's response.
    pub(super) answer: oneshot::Sender<Result<(), ClientError>>,
}

/// A task's lease.
#[derive(Debug)]
pub(super) struct Lease {
    task_id: String,
    length: Duration,
    /// The earliest time at which it ends, by this machine's clock.
    // A std mutex and not tokio's because it is never held across an await.
    ends: Mutex<Instant>,
    orders: mpsc::Sender<TouchOrder>,
}

impl Lease {
    /// A lease that begins now.
    pub(super) fn new(task_id: String, length: Duration, orders: mpsc::Sender<TouchOrder>) -> Self {
        Self {
            task_id,
            length,
            ends: Mutex::new(Instant::now() + length),
            orders,
        }
    }

    /// Sets the end of the lease to `extend` from now. Waits for the cluster's response.
    ///
    /// # Errors
    /// `Usage` for an extension that the cluster does not grant, `Refused` if the worker stopped.
    pub(super) async fn touch(&self, extend: Duration) -> Result<(), ClientError> {
        let ends = Instant::now() + extend;
        let (answer, answered) = oneshot::channel();
        let order = TouchOrder {
            task_id: self.task_id.clone(),
            extend,
            answer,
        };
        self.orders.send(order).await.map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())??;
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = ends;
        Ok(())
    }

    /// Touches the lease at each third of its length, unless the handler has extended it further: a
    /// touch sets the end, so it could also shorten the lease.
    pub(super) async fn keep(&self) -> Infallible {
        let pause = (self.length / 3).max(Duration::from_millis(1));
        loop {
            sleep(pause).await;
            let ends = *self.ends.lock().unwrap_or_else(PoisonError::into_inner);
            if ends >= Instant::now() + self.length {
                continue;
            }
            if let Err(error) = self.touch(self.length).await {
                tracing::warn!(task = self.task_id, %error, "a lease was not extended");
            }
        }
    }
}

fn stopped() -> ClientError {
    let message = "expected the worker to extend the lease, but it stopped";
    ClientError::new(ClientCode::WorkerStopped, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    const LENGTH: Duration = Duration::from_secs(30);

    fn lease() -> (Lease, mpsc::Receiver<TouchOrder>) {
        let (sender, receiver) = mpsc::channel(8);
        (Lease::new("task".to_owned(), LENGTH, sender), receiver)
    }

    /// Drives the lease until it requests a touch, grants it, and returns when that was.
    async fn next_touch(lease: &Lease, orders: &mut mpsc::Receiver<TouchOrder>) -> Instant {
        let order = tokio::select! {
            never = lease.keep() => match never {},
            order = orders.recv() => order.expect("the lease holds the sender"),
        };
        assert_eq!(order.extend, LENGTH);
        Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_touched_at_a_third_of_its_length() {
        let (lease, mut orders) = lease();
        let start = Instant::now();
        assert_eq!(next_touch(&lease, &mut orders).await - start, LENGTH / 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_the_handler_extended_is_not_shortened() {
        let (lease, mut orders) = lease();
        let start = Instant::now();
        let (touched, ()) = tokio::join!(lease.touch(LENGTH * 3), async {
            let order = orders.recv().await.expect("the lease holds the sender");
            order.answer.send(Ok(())).expect("the toucher waits");
        });
        touched.expect("granted");
        // 90 s were granted, and touches add 30 s: the first that does not shorten the lease is due
        // at 70 s.
        assert_eq!(
            next_touch(&lease, &mut orders).await - start,
            Duration::from_secs(70)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_touch_without_a_worker_is_an_error_and_no_wait() {
        let (lease, orders) = lease();
        drop(orders);
        let error = timeout(LENGTH, lease.touch(LENGTH))
            .await
            .expect("immediately");
        assert_eq!(
            error.expect_err("the worker is gone").code(),
            "worker_stopped"
        );
    }
}
