//! What a worker is told on its stream: each thing in a message of its own, or several in one (A22).

use super::channel::{NotSent, Sender};
use crate::errors::Refusal;
use flotilla_api::v1;
use prost::Message as _;
use tonic::Status;
use v1::server_message::Message as Say;

/// Tells a worker what it takes in the form that it takes it in.
pub(super) struct Voice {
    outgoing: Sender<Result<v1::ServerMessage, Status>>,
    takes_batches: bool,
}

impl Voice {
    /// A voice that goes to the transport of a stream.
    pub(super) fn new(
        outgoing: Sender<Result<v1::ServerMessage, Status>>,
        takes_batches: bool,
    ) -> Self {
        Self {
            outgoing,
            takes_batches,
        }
    }

    /// Hands out tasks.
    pub(super) async fn tasks(&self, tasks: Vec<v1::TaskAssignment>) -> Result<(), Refusal> {
        if !self.takes_batches {
            return self.each(tasks, Say::Task).await;
        }
        if tasks.is_empty() {
            return Ok(());
        }
        self.say(Say::Tasks(v1::TaskAssignments { tasks })).await
    }

    /// Says what became of messages.
    pub(super) async fn results(&self, results: Vec<v1::MessageResult>) -> Result<(), Refusal> {
        if !self.takes_batches {
            return self.each(results, Say::Result).await;
        }
        self.say(Say::Results(v1::MessageResults { results })).await
    }

    async fn each<T>(&self, things: Vec<T>, said: fn(T) -> Say) -> Result<(), Refusal> {
        for thing in things {
            self.say(said(thing)).await?;
        }
        Ok(())
    }

    /// Sends a message as soon as there is room for it. A refusal because the worker is gone reaches nobody.
    pub(super) async fn say(&self, message: Say) -> Result<(), Refusal> {
        let message = v1::ServerMessage {
            message: Some(message),
        };
        let bytes = message.encoded_len();
        let sent = self.outgoing.send(Ok(message), bytes).await;
        sent.map_err(|NotSent| {
            Refusal::unavailable("expected the worker to listen, but it is gone")
        })
    }
}
