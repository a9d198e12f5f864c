//! The embedded worker's stream to the leader.

use crate::context::Context;
use crate::members::ForwardedActor;
use flotilla_api::v1;
use flotilla_engine::Actor;
use flotilla_engine::ids::Namespace;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use v1::server_message::Message;

/// The maximum of messages that wait for the transport.
const MESSAGES_MAX: usize = 64;
/// How long the leader may take to open a stream: it may have just begun its term.
const OPEN_DEADLINE: Duration = Duration::from_secs(10);
/// How long the leader may take to end the stream of a worker that stops.
const CLOSE_DEADLINE: Duration = Duration::from_secs(1);

/// An open stream: it sends free slots and receives tasks. Reports travel separately, as commands.
pub(super) struct Link {
    outgoing: mpsc::Sender<v1::WorkerMessage>,
    incoming: Streaming<v1::ServerMessage>,
}

impl Link {
    /// Opens the stream to the current leader.
    pub(super) async fn open(
        context: &Context,
        namespace: &Namespace,
        hello: v1::WorkerMessage,
    ) -> Result<Self, Status> {
        let gateway = context.node_gateway.of(namespace);
        let replica = gateway.replica();
        let leader = replica.leadership().borrow().leader.clone();
        let leader = leader.ok_or_else(|| Status::unavailable("no leader is known"))?;
        let actor = ForwardedActor(Actor::System);
        let workers = context.leaders.worker_service((replica, &leader), actor);
        let workers = workers.map_err(|error| Status::unavailable(error.to_string()))?;
        let (outgoing, receiver) = mpsc::channel(MESSAGES_MAX);
        outgoing
            .try_send(hello)
            .expect("the channel is new and has room for more than one");
        let mut workers =
            workers.max_decoding_message_size(2 * flotilla_engine::limits::PAYLOAD_BYTES_MAX);
        let opening = timeout(OPEN_DEADLINE, workers.stream(ReceiverStream::new(receiver))).await;
        let opened = opening.map_err(|_| Status::unavailable("the leader opens no stream"))?;
        let incoming = opened?.into_inner();
        Ok(Self { outgoing, incoming })
    }

    /// The leader's next message; `None` when the leader ended the stream. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, Status> {
        loop {
            let Some(message) = self.incoming.message().await? else {
                return Ok(None);
            };
            if message.message.is_some() {
                return Ok(message.message);
            }
        }
    }

    /// Ends the stream, and waits until the leader has ended it, too. Tasks that still arrive are dropped.
    pub(super) async fn close(self) {
        let Self {
            outgoing,
            mut incoming,
            ..
        } = self;
        drop(outgoing);
        let ended = async { while let Ok(Some(_)) = incoming.message().await {} };
        // A leader that cannot be reached assigns nothing that arrives.
        let _ = timeout(CLOSE_DEADLINE, ended).await;
    }

    /// Sends a message.
    pub(super) async fn send(&mut self, message: v1::WorkerMessage) -> Result<(), Status> {
        let sent = self.outgoing.send(message).await;
        sent.map_err(|_| Status::unavailable("the stream is closed"))
    }
}
