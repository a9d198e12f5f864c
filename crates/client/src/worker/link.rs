//! One stream to the leader.

use crate::call::REPLY_BYTES_MAX;
use crate::client::Client;
use crate::failure::Failure;
use crate::nodes::PickedNode;
use flotilla_api::v1;
use flotilla_api::v1::server_message::Message;
use flotilla_api::v1::worker_service_client::WorkerServiceClient;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// Messages that wait for the connection.
const OUTGOING_MAX: usize = 64;
/// The timeout for a node to accept the stream, and then the worker.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// One stream to the leader.
#[derive(Debug)]
pub(super) struct Link {
    /// Takes messages to the leader.
    pub(super) outgoing: mpsc::Sender<v1::WorkerMessage>,
    /// Receives the leader's messages.
    pub(super) incoming: Incoming,
}

/// The leader's messages.
#[derive(Debug)]
pub(super) struct Incoming {
    client: Client,
    stream: Streaming<v1::ServerMessage>,
    position: usize,
}

impl Link {
    /// Opens the stream at the presumed leader and waits for the response to `hello`.
    pub(super) async fn open(
        client: &Client,
        hello: v1::WorkerMessage,
    ) -> Result<(Self, v1::HelloOk), Failure> {
        let PickedNode {
            position, channel, ..
        } = client.nodes().pick(Some(client.namespace()));
        let (outgoing, requests) = mpsc::channel(OUTGOING_MAX);
        outgoing
            .try_send(hello)
            .expect("the channel is new and has room for more than one");
        let mut rpc = WorkerServiceClient::new(channel).max_decoding_message_size(REPLY_BYTES_MAX);
        let opening = async {
            let response = rpc
                .stream(client.request(ReceiverStream::new(requests)))
                .await?;
            let namespace = Some(client.namespace());
            client.nodes().learn_leader(namespace, response.metadata());
            let mut stream = response.into_inner();
            let first = stream.message().await?;
            Ok::<_, Status>((stream, first))
        };
        let (stream, first) = match timeout(OPEN_TIMEOUT, opening).await {
            Err(_elapsed) => return Err(lost(client, position, "it did not answer in time")),
            Ok(Err(status)) => return Err(client.note_status(position, &status)),
            Ok(Ok(opened)) => opened,
        };
        let Some(Message::HelloOk(hello_ok)) = first.and_then(|first| first.message) else {
            return Err(lost(client, position, "it did not answer the hello"));
        };
        client.nodes().mark_served(position);
        let incoming = Incoming {
            client: client.clone(),
            stream,
            position,
        };
        Ok((Self { outgoing, incoming }, hello_ok))
    }
}

impl Incoming {
    /// The next message. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Message, Failure> {
        loop {
            match self.stream.message().await {
                // A message of a newer server that this version does not know.
                Ok(Some(v1::ServerMessage { message: None })) => {}
                Ok(Some(v1::ServerMessage {
                    message: Some(message),
                })) => return Ok(message),
                Ok(None) => return Err(lost(&self.client, self.position, "it ended the stream")),
                Err(status) => return Err(self.client.note_status(self.position, &status)),
            }
        }
    }
}

fn lost(client: &Client, position: usize, what: &str) -> Failure {
    let failure = Failure::stream_lost(format!(
        "expected the leader to keep the worker's stream, but {what}"
    ));
    client.note_failure(position, &failure);
    failure
}
