//! One held record: its handler, the touches meanwhile, and its ack or nack.

use super::member::Member;
use super::{RecordError, StreamContext};
use crate::error::ClientError;
use crate::period::millis;
use flotilla_api::v1;
use futures::FutureExt;
use std::any::Any;
use std::convert::Infallible;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// A record that the worker holds.
pub(super) struct HeldRecord {
    member: Arc<Member>,
    record: Arc<v1::Record>,
    attempt: u32,
    take_id: u64,
    ack_timeout: Duration,
}

/// How the record is settled.
enum Verdict {
    /// The record is acknowledged.
    Ack,
    /// The record is returned for redelivery.
    Nack(RecordError),
}

impl HeldRecord {
    /// A record of a take.
    pub(super) fn new(
        member: Arc<Member>,
        delivery: v1::Delivery,
        take_id: u64,
        ack_timeout: Duration,
    ) -> Self {
        Self {
            member,
            record: Arc::new(delivery.record.unwrap_or_default()),
            attempt: delivery.attempt,
            take_id,
            ack_timeout,
        }
    }

    /// Runs the handler and settles the record.
    pub(super) async fn process(self) {
        let mut kept = pin!(self.keep());
        let verdict = tokio::select! {
            biased;
            verdict = self.handle() => verdict,
            () = sleep(self.member.setup.message_timeout) => self.timed_out(),
            () = &mut kept => return self.warn_of_loss(),
        };
        // Until the response arrives, the record must not go to another consumer.
        let settled = tokio::select! {
            biased;
            settled = self.settle(verdict) => settled,
            never = async { kept.await; pending::<Infallible>().await } => match never {},
        };
        match settled {
            Ok(true) => {}
            // Or the response to the first attempt was lost, and this was a retry.
            Ok(false) => self.warn_of_loss(),
            Err(error) => {
                let record = self.record.id.as_str();
                tracing::warn!(record, %error, "a record was neither acknowledged nor returned: it may be redelivered");
            }
        }
    }

    /// Acknowledges or returns the record; returns whether it was still in flight.
    async fn settle(&self, verdict: Verdict) -> Result<bool, ClientError> {
        let id = self.record.id.as_str();
        match verdict {
            Verdict::Ack => self.member.ack(self.take_id, id).await,
            Verdict::Nack(error) => {
                let delay = error.delay_after(self.attempt);
                tracing::warn!(
                    record = id,
                    attempt = self.attempt,
                    delay_ms = millis(delay),
                    error = error.message,
                    "a record is returned"
                );
                self.member.nack(self.take_id, id, delay).await
            }
        }
    }

    fn warn_of_loss(&self) {
        tracing::warn!(
            record = self.record.id,
            "a record's ack deadline passed before it was acknowledged: others may process it, too"
        );
    }

    async fn handle(&self) -> Verdict {
        let context = StreamContext::new(self.member.clone(), self.record.clone(), self.attempt);
        let handler = &self.member.setup.handler;
        let handled = AssertUnwindSafe(async { handler(context).await });
        match handled.catch_unwind().await {
            Ok(Ok(())) => Verdict::Ack,
            Ok(Err(error)) => Verdict::Nack(error),
            Err(payload) => Verdict::Nack(RecordError::new(format!(
                "expected the handler to return, but it panicked: {}",
                said(payload.as_ref())
            ))),
        }
    }

    fn timed_out(&self) -> Verdict {
        let limit = self.member.setup.message_timeout.as_millis();
        let message = format!("expected the handler to end within {limit} ms, but it did not");
        Verdict::Nack(RecordError::new(message))
    }

    /// Touches the record at each third of its ack timeout; ends when it is no longer in flight.
    async fn keep(&self) {
        let pause = (self.ack_timeout / 3).max(Duration::from_millis(1));
        loop {
            sleep(pause).await;
            let id = self.record.id.as_str();
            match self.member.touch(self.take_id, id, self.ack_timeout).await {
                Ok(()) => {}
                Err(error) if error.is_passing() => {
                    tracing::warn!(record = self.record.id, %error, "a record's ack deadline was not extended");
                }
                Err(error) => {
                    tracing::info!(record = self.record.id, %error, "a record is no longer in flight");
                    return;
                }
            }
        }
    }
}

/// The message of a panic.
fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or_default()
}
