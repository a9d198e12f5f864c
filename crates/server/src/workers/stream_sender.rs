//! Sends messages on a worker's stream: one item per message, or several batched (A22).

use super::channel::{NotSent, Sender};
use crate::errors::Refusal;
use flotilla_api::v1;
use prost::Message as _;
use tonic::Status;
use v1::server_message::Message as Outbound;

/// Sends items in the form that the worker supports.
pub(super) struct StreamSender {
    outgoing: Sender<Result<v1::ServerMessage, Status>>,
    supports_batches: bool,
}

impl StreamSender {
    /// A sender to the transport of a stream.
    pub(super) fn new(
        outgoing: Sender<Result<v1::ServerMessage, Status>>,
        supports_batches: bool,
    ) -> Self {
        Self {
            outgoing,
            supports_batches,
        }
    }

    /// Sends tasks.
    pub(super) async fn tasks(&self, tasks: Vec<v1::TaskAssignment>) -> Result<(), Refusal> {
        if !self.supports_batches {
            return self.each(tasks, Outbound::Task).await;
        }
        if tasks.is_empty() {
            return Ok(());
        }
        self.send(Outbound::Tasks(v1::TaskAssignments { tasks }))
            .await
    }

    /// Sends the results of messages.
    pub(super) async fn results(&self, results: Vec<v1::MessageResult>) -> Result<(), Refusal> {
        if !self.supports_batches {
            return self.each(results, Outbound::Result).await;
        }
        self.send(Outbound::Results(v1::MessageResults { results }))
            .await
    }

    async fn each<T>(&self, things: Vec<T>, wrap: fn(T) -> Outbound) -> Result<(), Refusal> {
        for thing in things {
            self.send(wrap(thing)).await?;
        }
        Ok(())
    }

    /// Sends a message once there is room for it. A refusal because the worker is gone reaches no
    /// caller.
    pub(super) async fn send(&self, message: Outbound) -> Result<(), Refusal> {
        let message = v1::ServerMessage {
            message: Some(message),
        };
        let bytes = message.encoded_len();
        let sent = self.outgoing.send(Ok(message), bytes).await;
        sent.map_err(|NotSent| {
            Refusal::unavailable("expected the worker to be connected, but it is gone")
        })
    }
}
