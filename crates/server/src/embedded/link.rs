//! The embedded worker's stream to the leader.

use crate::context::Context;
use flotilla_api::v1;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Status, Streaming};
use v1::server_message::Message as Inbound;
use v1::worker_message::Message;
use v1::worker_service_client::WorkerServiceClient;

/// The maximum of messages that wait for the transport.
const MESSAGES_MAX: usize = 64;
const CONNECT_DEADLINE: Duration = Duration::from_secs(2);
/// How long the leader may take to end the stream of a worker that stops.
const CLOSE_DEADLINE: Duration = Duration::from_secs(1);

/// An open stream: it sends free slots and receives tasks. Reports travel separately, as commands.
pub(super) struct Link {
    outgoing: Outgoing,
    incoming: Streaming<v1::ServerMessage>,
    tasks_received: u64,
    /// The last offer: a running total, as [`v1::WorkerSlots`] defines it.
    max_tasks_total: u64,
}

/// The sending side, which numbers its messages.
struct Outgoing {
    sender: mpsc::Sender<v1::WorkerMessage>,
    sequence: u64,
}

impl Link {
    /// Opens the stream to the current leader.
    pub(super) async fn open(context: &Context, hello: v1::WorkerHello) -> Result<Self, Status> {
        let leadership = context.gateway.replica().leadership();
        let leader = leadership.borrow().leader.clone();
        let leader = leader.ok_or_else(|| Status::unavailable("no leader is known"))?;
        let endpoint = Endpoint::from_shared(format!("http://{}", leader.client_address))
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let endpoint = endpoint
            .connect_timeout(CONNECT_DEADLINE)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(2))
            .keep_alive_timeout(Duration::from_secs(2));
        let channel = context.sockets.channel(&endpoint);
        let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
        let mut outgoing = Outgoing {
            sender,
            sequence: 0,
        };
        outgoing.send(Message::Hello(hello)).await?;
        let mut client = WorkerServiceClient::new(channel)
            .max_decoding_message_size(2 * flotilla_engine::limits::PAYLOAD_BYTES_MAX);
        let incoming = client
            .stream(ReceiverStream::new(receiver))
            .await?
            .into_inner();
        Ok(Self {
            outgoing,
            incoming,
            tasks_received: 0,
            max_tasks_total: 0,
        })
    }

    /// The leader's next message; `None` when the leader ended the stream. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Option<Inbound>, Status> {
        loop {
            let Some(message) = self.incoming.message().await? else {
                return Ok(None);
            };
            if let Some(Inbound::Task(_)) = message.message {
                self.tasks_received += 1;
            }
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

    /// Offers the number of tasks that the worker would take now, unless it is unchanged.
    pub(super) async fn offer(&mut self, free: usize) -> Result<(), Status> {
        let max_tasks_total = self.tasks_received + free as u64;
        if max_tasks_total == self.max_tasks_total {
            return Ok(());
        }
        self.max_tasks_total = max_tasks_total;
        let slots = Message::Slots(v1::WorkerSlots { max_tasks_total });
        self.outgoing.send(slots).await
    }

    /// Sends a heartbeat.
    pub(super) async fn heartbeat(&mut self, load: usize) -> Result<(), Status> {
        let current_load = u32::try_from(load).unwrap_or(u32::MAX);
        self.outgoing
            .send(Message::Heartbeat(v1::WorkerLoad { current_load }))
            .await
    }
}

impl Outgoing {
    async fn send(&mut self, message: Message) -> Result<(), Status> {
        self.sequence += 1;
        let message = v1::WorkerMessage {
            sequence: self.sequence,
            message: Some(message),
        };
        let sent = self.sender.send(message).await;
        sent.map_err(|_| Status::unavailable("the stream is closed"))
    }
}
