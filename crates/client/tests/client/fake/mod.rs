//! A node on the loopback interface, whose every response is controlled by the test.
//!
//! Each call is handed to the test, which answers it at any time, so that tests read like a
//! dialogue and wait for events instead of time.

mod services;

use flotilla_api::v1;
use flotilla_api::v1::action_service_server::ActionServiceServer;
use flotilla_api::v1::stream_service_server::StreamServiceServer;
use flotilla_api::v1::worker_service_server::WorkerServiceServer;
use flotilla_api::v1::workflow_service_server::WorkflowServiceServer;
use flotilla_client::{Client, ClientOptions};
use prost::Message;
use std::collections::HashMap;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::metadata::MetadataMap;
use tonic::transport::Server;
use tonic::{Code, Status, Streaming};
use tonic_types::{ErrorDetails, StatusExt};

/// The time after which a test fails: the event that it waits for will not come.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A node whose responses the test controls.
pub(crate) struct FakeNode {
    /// Its `host:port`.
    pub(crate) address: String,
    arrivals: mpsc::Receiver<Arrival>,
}

/// A call that arrived at a node.
pub(crate) enum Arrival {
    /// A unary call.
    Unary(UnaryCall),
    /// A call of `WatchRun`.
    Watch(WatchCall),
    /// A worker's stream.
    Worker(WorkerCall),
}

/// A unary call that waits for its response.
pub(crate) struct UnaryCall {
    rpc: &'static str,
    request: Vec<u8>,
    metadata: MetadataMap,
    answer: oneshot::Sender<Result<Answer, Status>>,
}

/// An encoded response, and the leader that it names.
pub(crate) struct Answer {
    reply: Vec<u8>,
    leader: Option<String>,
}

/// A call of `WatchRun`.
pub(crate) struct WatchCall {
    /// The request.
    pub(crate) request: v1::WatchRunRequest,
    /// Takes the responses; dropping it ends the stream.
    pub(crate) updates: mpsc::Sender<Result<v1::WatchRunResponse, Status>>,
}

/// A worker's stream that is not accepted yet.
pub(crate) struct WorkerCall {
    messages: Streaming<v1::WorkerMessage>,
    accept: oneshot::Sender<Result<mpsc::Receiver<Result<v1::ServerMessage, Status>>, Status>>,
}

/// A worker's stream.
pub(crate) struct WorkerStream {
    messages: Streaming<v1::WorkerMessage>,
    replies: mpsc::Sender<Result<v1::ServerMessage, Status>>,
}

impl FakeNode {
    /// Starts a node on a free port.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (sender, arrivals) = mpsc::channel(16);
        let service = services::Service { arrivals: sender };
        let server = Server::builder()
            .add_service(WorkflowServiceServer::new(service.clone()))
            .add_service(ActionServiceServer::new(service.clone()))
            .add_service(StreamServiceServer::new(service.clone()))
            .add_service(WorkerServiceServer::new(service))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(server);
        Self { address, arrivals }
    }

    /// The next unary call, which must be of this method.
    pub(crate) async fn unary<Q: Message + Default>(&mut self, rpc: &str) -> (Q, UnaryCall) {
        let call = self.call().await;
        assert_eq!(call.rpc, rpc);
        (call.decode(), call)
    }

    /// The next arrival, which must be a unary call.
    pub(crate) async fn call(&mut self) -> UnaryCall {
        match self.next().await {
            Arrival::Unary(call) => call,
            Arrival::Watch(_) => panic!("expected a unary call, but a watch came"),
            Arrival::Worker(_) => panic!("expected a unary call, but a worker came"),
        }
    }

    /// The next arrival, which must be a call of `WatchRun`.
    pub(crate) async fn watch(&mut self) -> WatchCall {
        match self.next().await {
            Arrival::Watch(call) => call,
            Arrival::Unary(call) => panic!("expected a watch, but {} came", call.rpc),
            Arrival::Worker(_) => panic!("expected a watch, but a worker came"),
        }
    }

    /// The next arrival, which must be a worker's stream.
    pub(crate) async fn worker(&mut self) -> WorkerCall {
        match self.next().await {
            Arrival::Worker(call) => call,
            Arrival::Unary(call) => panic!("expected a worker, but {} came", call.rpc),
            Arrival::Watch(_) => panic!("expected a worker, but a watch came"),
        }
    }

    /// Registers a worker with one action.
    pub(crate) async fn register(&mut self) -> v1::RegisterRequest {
        let (action, call) = self
            .unary::<v1::RegisterActionRequest>("register_action")
            .await;
        assert!(action.only_if_missing, "a worker replaces no action");
        call.answer(v1::RegisterActionResponse::default());
        let (worker, call) = self.unary::<v1::RegisterRequest>("register").await;
        call.answer(v1::RegisterResponse::default());
        worker
    }

    /// Registers a worker with one action and accepts its stream.
    pub(crate) async fn employ(&mut self) -> WorkerStream {
        self.register().await;
        self.worker().await.accept().await.0
    }

    /// Whether nothing has arrived.
    pub(crate) fn is_idle(&self) -> bool {
        self.arrivals.is_empty()
    }

    async fn next(&mut self) -> Arrival {
        let arrival = timeout(TIMEOUT, self.arrivals.recv())
            .await
            .expect("a call should come");
        arrival.expect("the server runs as long as the test")
    }
}

impl UnaryCall {
    /// The called method.
    pub(crate) fn rpc(&self) -> &'static str {
        self.rpc
    }

    /// The request.
    pub(crate) fn decode<Q: Message + Default>(&self) -> Q {
        Q::decode(self.request.as_slice()).expect("it was just encoded")
    }

    /// Sends a response.
    pub(crate) fn answer(self, reply: impl Message) {
        self.send(Ok(Answer {
            reply: reply.encode_to_vec(),
            leader: None,
        }));
    }

    /// Sends a response that names the leader.
    pub(crate) fn answer_and_name_leader(self, reply: impl Message, leader: &FakeNode) {
        let leader = Some(leader.address.clone());
        self.send(Ok(Answer {
            reply: reply.encode_to_vec(),
            leader,
        }));
    }

    /// Responds with an error.
    pub(crate) fn refuse(self, status: Status) {
        self.send(Err(status));
    }

    /// The caller's deadline as gRPC sends it.
    pub(crate) fn grpc_timeout(&self) -> Option<&str> {
        self.metadata
            .get("grpc-timeout")
            .and_then(|value| value.to_str().ok())
    }

    /// The caller's deadline.
    pub(crate) fn limit(&self) -> Option<Duration> {
        let text = self.grpc_timeout()?;
        let (count, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let count = count.parse().ok()?;
        match unit {
            "n" => Some(Duration::from_nanos(count)),
            "u" => Some(Duration::from_micros(count)),
            "m" => Some(Duration::from_millis(count)),
            "S" => Some(Duration::from_secs(count)),
            _ => None,
        }
    }

    fn send(self, answer: Result<Answer, Status>) {
        // A caller may have given up.
        drop(self.answer.send(answer));
    }
}

impl WorkerCall {
    /// Reads the hello and completes the handshake.
    pub(crate) async fn accept(self) -> (WorkerStream, v1::WorkerHello) {
        let (replies, receiver) = mpsc::channel(16);
        self.accept.send(Ok(receiver)).expect("the caller waits");
        let mut stream = WorkerStream {
            messages: self.messages,
            replies,
        };
        let v1::worker_message::Message::Hello(hello) = stream.next().await.1 else {
            panic!("expected hello to be the first message");
        };
        let status = v1::WorkerStatus::Active.into();
        stream
            .send(v1::server_message::Message::HelloOk(v1::HelloOk {
                status,
                supports_batches: true,
            }))
            .await;
        (stream, hello)
    }

    /// Refuses the worker.
    pub(crate) fn refuse(self, status: Status) {
        assert!(self.accept.send(Err(status)).is_ok(), "the caller waits");
    }
}

impl WorkerStream {
    /// The next message and its number.
    pub(crate) async fn next(&mut self) -> (u64, v1::worker_message::Message) {
        let message = timeout(TIMEOUT, self.messages.message()).await;
        let message = message
            .expect("a message should come")
            .expect("the stream is whole");
        let message = message.expect("the worker keeps its stream");
        (
            message.sequence,
            message.message.expect("this worker knows all messages"),
        )
    }

    /// The next message other than heartbeats and offers of slots.
    pub(crate) async fn next_report(&mut self) -> (u64, v1::worker_message::Message) {
        use v1::worker_message::Message;
        loop {
            match self.next().await {
                (_, Message::Heartbeat(_) | Message::Slots(_)) => {}
                report => return report,
            }
        }
    }

    /// The next offer of slots, skipping heartbeats.
    pub(crate) async fn next_slots(&mut self) -> u64 {
        use v1::worker_message::Message;
        loop {
            match self.next().await.1 {
                Message::Slots(slots) => return slots.max_tasks_total,
                Message::Heartbeat(_) => {}
                other => panic!("expected slots, but the worker said {other:?}"),
            }
        }
    }

    /// Sends a message.
    pub(crate) async fn send(&self, message: v1::server_message::Message) {
        let message = v1::ServerMessage {
            message: Some(message),
        };
        self.replies
            .send(Ok(message))
            .await
            .expect("the worker keeps its stream");
    }

    /// Assigns a task of the action `work`.
    pub(crate) async fn assign(&self, token: &str, lease_ms: u64) {
        let task = assignment(token, lease_ms);
        self.send(v1::server_message::Message::Task(task)).await;
    }

    /// Assigns tasks of the action `work` in one message.
    pub(crate) async fn assign_together(&self, tokens: &[&str], lease_ms: u64) {
        let tasks = tokens.iter().map(|token| assignment(token, lease_ms));
        let batch = v1::TaskAssignments {
            tasks: tasks.collect(),
        };
        self.send(v1::server_message::Message::Tasks(batch)).await;
    }

    /// Accepts the numbered messages in a single response.
    pub(crate) async fn accept_together(&self, sequences: &[u64]) {
        let results = sequences.iter().map(|sequence| v1::MessageResult {
            sequence: *sequence,
            result: Some(v1::ItemResult::default()),
        });
        let batch = v1::MessageResults {
            results: results.collect(),
        };
        self.send(v1::server_message::Message::Results(batch)).await;
    }

    /// Assigns a task of the action `work` that can be accepted.
    pub(crate) async fn assign_tracked(&self, token: &str) {
        let task = v1::TaskAssignment {
            task_id: token.to_owned(),
            task_token: token.to_owned(),
            action: "work".to_owned(),
            attempt: 1,
            lease_ms: 600_000,
            report_timeout_ms: Some(5),
            can_accept: true,
            report_url: "http://a:1/v1/tasks/t/report".to_owned(),
            ..v1::TaskAssignment::default()
        };
        self.send(v1::server_message::Message::Task(task)).await;
    }

    /// Accepts the numbered message.
    pub(crate) async fn accept(&self, sequence: u64) {
        let result = v1::MessageResult {
            sequence,
            result: Some(v1::ItemResult::default()),
        };
        self.send(v1::server_message::Message::Result(result)).await;
    }

    /// Refuses the numbered message.
    pub(crate) async fn refuse(&self, sequence: u64, code: Code, reason: &str) {
        self.refuse_with(sequence, (code, reason, Duration::ZERO))
            .await;
    }

    /// Refuses the numbered message for now, and says when to repeat it.
    pub(crate) async fn postpone(&self, sequence: u64, reason: &str, delay: Duration) {
        let code = Code::ResourceExhausted;
        self.refuse_with(sequence, (code, reason, delay)).await;
    }

    async fn refuse_with(&self, sequence: u64, (code, reason, delay): (Code, &str, Duration)) {
        let error = v1::ItemError {
            grpc_status: code.into(),
            code: reason.to_owned(),
            message: "expected something else".to_owned(),
            retry_delay_ms: u64::try_from(delay.as_millis()).expect("a short delay"),
            ..v1::ItemError::default()
        };
        let result = Some(v1::ItemResult {
            error: Some(error),
            ..v1::ItemResult::default()
        });
        self.send(v1::server_message::Message::Result(v1::MessageResult {
            sequence,
            result,
        }))
        .await;
    }

    /// Ends the stream with an error.
    pub(crate) async fn end(self, status: Status) {
        self.replies
            .send(Err(status))
            .await
            .expect("the worker keeps its stream");
    }
}

/// A client of the nodes that does not wait between attempts.
pub(crate) fn client(nodes: &[&FakeNode]) -> Client {
    client_of(
        nodes.iter().map(|node| node.address.clone()).collect(),
        TIMEOUT,
    )
}

/// A client of these endpoints with this timeout.
pub(crate) fn client_of(endpoints: Vec<String>, timeout: Duration) -> Client {
    Client::connect(ClientOptions {
        endpoints,
        timeout,
        ..ClientOptions::default()
    })
    .expect("the endpoints are well-formed")
}

/// An endpoint where nothing listens.
pub(crate) async fn dead_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

/// An error, as the server sends it.
pub(crate) fn refusal(code: Code, reason: &str) -> Status {
    let details = ErrorDetails::with_error_info(reason, "flotilla", HashMap::new());
    Status::with_error_details(code, "expected something else", details)
}

/// An error that names the leader.
pub(crate) fn not_leader(leader: &FakeNode) -> Status {
    let mut status = refusal(Code::Unavailable, "not_leader");
    let address = leader.address.parse().expect("an address is ASCII");
    status.metadata_mut().insert("flo-leader", address);
    status
}

/// A task of the action `work`.
fn assignment(token: &str, lease_ms: u64) -> v1::TaskAssignment {
    v1::TaskAssignment {
        task_id: token.to_owned(),
        task_token: token.to_owned(),
        action: "work".to_owned(),
        input: "{}".into(),
        attempt: 1,
        lease_ms,
        ..v1::TaskAssignment::default()
    }
}
