//! Workers: streams and long polls, at the leader and at other nodes.

use crate::node::{Node, refused};
use crate::wait::until;
use flotilla_api::v1;
use flotilla_engine::Actor;
use flotilla_replica::protocol::Sender;
use prost::Message as _;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::BinaryMetadataValue;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status, Streaming};
use v1::server_message::Message as Said;
use v1::worker_message::Message;
use v1::worker_service_client::WorkerServiceClient;

/// A worker's stream, on the worker's side.
struct Stream {
    outgoing: mpsc::Sender<v1::WorkerMessage>,
    incoming: Streaming<v1::ServerMessage>,
}

impl Stream {
    async fn open(node: &Node) -> Self {
        let (outgoing, messages) = mpsc::channel(16);
        let opened = node.workers().stream(ReceiverStream::new(messages)).await;
        Self {
            outgoing,
            incoming: opened.unwrap().into_inner(),
        }
    }

    /// Opens a stream, sends a hello and offers this many slots.
    async fn handshake_result(node: &Node, worker: &str, max_tasks_total: u64) -> Self {
        let mut stream = Self::open(node).await;
        stream.say(Message::Hello(hello(worker))).await;
        assert!(matches!(stream.receive().await, Ok(Some(Said::HelloOk(_)))));
        stream
            .say(Message::Slots(v1::WorkerSlots { max_tasks_total }))
            .await;
        stream
    }

    async fn say(&self, message: Message) {
        self.say_numbered(1, message).await;
    }

    async fn say_numbered(&self, sequence: u64, message: Message) {
        let message = v1::WorkerMessage {
            sequence,
            message: Some(message),
        };
        self.outgoing.send(message).await.unwrap();
    }

    async fn receive(&mut self) -> Result<Option<Said>, Status> {
        let heard = self.incoming.message().await?;
        Ok(heard.and_then(|heard| heard.message))
    }

    async fn task(&mut self) -> v1::TaskAssignment {
        match self.receive().await.unwrap() {
            Some(Said::Task(task)) => task,
            other => panic!("expected a task, but heard {other:?}"),
        }
    }
}

fn hello(worker: &str) -> v1::WorkerHello {
    v1::WorkerHello {
        worker_id: worker.to_owned(),
        incarnation: 1,
        actions: vec!["pack".to_owned()],
        ..v1::WorkerHello::default()
    }
}

fn awaiting(worker: &str, slots: u32) -> v1::AwaitRequest {
    v1::AwaitRequest {
        worker_id: worker.to_owned(),
        incarnation: 1,
        actions: vec!["pack".to_owned()],
        slots,
        ..v1::AwaitRequest::default()
    }
}

fn zone(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("zone".to_owned(), name.to_owned())])
}

async fn register(node: &Node, worker: &str, labels: BTreeMap<String, String>) {
    let action = v1::RegisterActionRequest {
        name: "pack".to_owned(),
        timeout_ms: Some(600_000),
        only_if_missing: true,
        ..v1::RegisterActionRequest::default()
    };
    node.actions().register_action(action).await.unwrap();
    let request = v1::RegisterRequest {
        worker_id: worker.to_owned(),
        incarnation: 1,
        labels,
        ..v1::RegisterRequest::default()
    };
    node.workers().register(request).await.unwrap();
}

/// Starts an action run with the input.
async fn invoke(node: &Node, input: String, labels: BTreeMap<String, String>) -> String {
    let request = v1::InvokeActionRequest {
        name: "pack".to_owned(),
        input: input.into(),
        labels,
        ..v1::InvokeActionRequest::default()
    };
    let invoked = node.actions().invoke_action(request).await.unwrap();
    invoked.into_inner().action_run_id
}

/// The leader, and a node that follows it.
async fn leader_and_follower(nodes: &[Node]) -> (&Node, &Node) {
    let request = v1::GetStatusRequest {};
    let reply = nodes[0].cluster().get_status(request).await.unwrap();
    let leader = reply.metadata().get("flo-leader").unwrap();
    let (leaders, followers): (Vec<_>, Vec<_>) = nodes
        .iter()
        .partition(|node| node.address.as_bytes() == leader.as_bytes());
    (leaders[0], followers[0])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hello_with_too_many_actions_is_refused() {
    let node = Node::start().await;
    register(&node, "w", BTreeMap::new()).await;
    let actions: Vec<String> = (0..1_025)
        .map(|number| format!("action-{number}"))
        .collect();
    let mut stream = Stream::open(&node).await;
    let greedy = v1::WorkerHello {
        actions: actions.clone(),
        ..hello("w")
    };
    stream.say(Message::Hello(greedy)).await;
    let invalid = (Code::InvalidArgument, "invalid_argument".to_owned());
    assert_eq!(refused(stream.receive().await), invalid);
    let greedy = v1::AwaitRequest {
        actions,
        ..awaiting("w", 1)
    };
    assert_eq!(refused(node.workers().r#await(greedy).await), invalid);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_takes_batches_gets_and_gives_several_things_in_one_message() {
    let node = Node::start().await;
    register(&node, "w", BTreeMap::new()).await;
    let mut stream = Stream::open(&node).await;
    let hello = v1::WorkerHello {
        supports_batches: true,
        ..hello("w")
    };
    stream.say(Message::Hello(hello)).await;
    let Ok(Some(Said::HelloOk(hello_ok))) = stream.receive().await else {
        panic!("expected to be greeted back");
    };
    assert!(hello_ok.supports_batches);
    for _ in 0..3 {
        invoke(&node, "1".to_owned(), BTreeMap::new()).await;
    }
    let max_tasks_total = 3;
    stream
        .say(Message::Slots(v1::WorkerSlots { max_tasks_total }))
        .await;
    let mut tasks = Vec::new();
    while tasks.len() < 3 {
        match stream.receive().await.unwrap() {
            Some(Said::Tasks(batch)) => tasks.extend(batch.tasks),
            other => panic!("expected tasks, but heard {other:?}"),
        }
    }
    let mut completions: Vec<_> = tasks
        .into_iter()
        .map(|task| v1::TaskCompletion {
            task_token: task.task_token,
            ..v1::TaskCompletion::default()
        })
        .collect();
    completions[1].outcome = "execution_failure".to_owned();
    let batch = v1::TaskCompletions { completions };
    stream.say_numbered(7, Message::Completions(batch)).await;
    let mut results = BTreeMap::new();
    while results.len() < 3 {
        match stream.receive().await.unwrap() {
            Some(Said::Results(batch)) => results.extend(batch.results.into_iter().map(|result| {
                let error = result.result.and_then(|result| result.error);
                (result.sequence, error.map(|error| error.code))
            })),
            other => panic!("expected results, but heard {other:?}"),
        }
    }
    let refused = Some("outcome_reserved".to_owned());
    assert_eq!(
        results,
        BTreeMap::from([(7, None), (8, refused), (9, None)])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn more_completions_in_a_message_than_may_be_are_refused() {
    let node = Node::start().await;
    register(&node, "w", BTreeMap::new()).await;
    let mut stream = Stream::handshake_result(&node, "w", 1).await;
    let completions = vec![v1::TaskCompletion::default(); 1_001];
    let batch = v1::TaskCompletions { completions };
    stream.say(Message::Completions(batch)).await;
    let invalid = (Code::InvalidArgument, "invalid_argument".to_owned());
    assert_eq!(self::refused(stream.receive().await), invalid);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_ends_the_streams_of_workers_with_a_word() {
    let node = Node::start().await;
    register(&node, "w", BTreeMap::new()).await;
    let mut silent = Stream::open(&node).await;
    let mut handshake_result = Stream::handshake_result(&node, "w", 1).await;
    let (stopped, silent, handshake_result) =
        tokio::join!(node.stop(), silent.receive(), handshake_result.receive());
    stopped.0.unwrap();
    let stopping = (Code::Unavailable, "shutting_down".to_owned());
    assert_eq!(refused(silent), stopping);
    assert_eq!(refused(handshake_result), stopping);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_a_newer_one_replaces_learns_why_it_ends() {
    let node = Node::start().await;
    register(&node, "w", BTreeMap::new()).await;
    let mut older = Stream::handshake_result(&node, "w", 1).await;
    let _newer = Stream::handshake_result(&node, "w", 1).await;
    let replaced = (Code::Unavailable, "poll_replaced".to_owned());
    assert_eq!(refused(older.receive().await), replaced);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_waits_for_a_worker_with_its_labels_and_holds_up_no_other() {
    let node = Node::start().await;
    register(&node, "plain", BTreeMap::new()).await;
    register(&node, "zoned", zone("a")).await;
    let mut plain = Stream::handshake_result(&node, "plain", 1).await;
    let labeled = invoke(&node, String::new(), zone("a")).await;
    let other = invoke(&node, String::new(), BTreeMap::new()).await;
    assert_eq!(plain.task().await.action_run_id, other);
    let mut zoned = Stream::handshake_result(&node, "zoned", 1).await;
    assert_eq!(zoned.task().await.action_run_id, labeled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_gets_no_more_tasks_than_it_registered_for_and_the_rest_when_it_says_so() {
    let node = Node::start().await;
    register(&node, "w", BTreeMap::new()).await;
    for _ in 0..15 {
        invoke(&node, String::new(), BTreeMap::new()).await;
    }
    let mut stream = Stream::handshake_result(&node, "w", u64::MAX).await;
    let mut runs = BTreeSet::new();
    for _ in 0..10 {
        runs.insert(stream.task().await.action_run_id);
    }
    // The response to a heartbeat comes after what was sent before.
    let load = v1::WorkerLoad { current_load: 10 };
    stream.say(Message::Heartbeat(load)).await;
    assert!(matches!(stream.receive().await, Ok(Some(Said::Result(_)))));
    let slots = v1::WorkerSlots {
        max_tasks_total: 15,
    };
    stream.say(Message::Slots(slots)).await;
    for _ in 0..5 {
        runs.insert(stream.task().await.action_run_id);
    }
    assert_eq!(runs.len(), 15);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_tasks_come_through_any_node_in_as_many_answers_as_it_takes() {
    let nodes = Node::start_cluster().await;
    let (leader, follower) = leader_and_follower(&nodes).await;
    register(follower, "w", BTreeMap::new()).await;
    let input = format!("{:?}", "x".repeat(1_000_000));
    let mut invoked = BTreeSet::new();
    for _ in 0..6 {
        invoked.insert(invoke(follower, input.clone(), BTreeMap::new()).await);
    }
    // All of them are leased to the worker, which then loses them.
    let mut stream = Stream::handshake_result(leader, "w", 6).await;
    for _ in 0..invoked.len() {
        stream.task().await;
    }
    drop(stream);
    let mut received = BTreeSet::new();
    let mut held_task_tokens = Vec::new();
    while received.len() < invoked.len() {
        let request = v1::AwaitRequest {
            held_task_tokens: held_task_tokens.clone(),
            ..awaiting("w", 6)
        };
        // No gRPC client needs to raise its limit for the response.
        let response = follower
            .workers()
            .r#await(request)
            .await
            .unwrap()
            .into_inner();
        assert!((1..=4).contains(&response.tasks.len()));
        for task in response.tasks {
            assert_eq!(task.input.len(), input.len());
            received.insert(task.action_run_id);
            held_task_tokens.push(task.task_token);
        }
    }
    assert_eq!(received, invoked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_is_passed_on_to_the_leader_once_and_no_further() {
    let nodes = Node::start_cluster().await;
    let (leader, follower) = leader_and_follower(&nodes).await;
    register(leader, "w", BTreeMap::new()).await;
    invoke(leader, String::new(), BTreeMap::new()).await;
    let peer_address = follower.peer_address.as_ref().unwrap();
    let endpoint = Endpoint::from_shared(format!("http://{peer_address}")).unwrap();
    let mut at_peer_port = WorkerServiceClient::new(endpoint.connect_lazy());
    let mut cluster = leader.cluster();
    let status = cluster.get_status(v1::GetStatusRequest::default()).await;
    let status = status.unwrap().into_inner();
    let sender = Sender {
        cluster_id: status.cluster_id,
        node_id: status.leader_id.unwrap(),
        target_node_id: status
            .nodes
            .iter()
            .find(|node| node.address == follower.address)
            .unwrap()
            .node_id,
        ..Sender::default()
    };
    let actor = BinaryMetadataValue::from_bytes(&Actor::Anonymous.encode());
    let passed_on = |sender: &Sender| {
        let mut request = Request::new(awaiting("w", 1));
        let sender = BinaryMetadataValue::from_bytes(&sender.encode_to_vec());
        request.metadata_mut().insert_bin("flo-sender-bin", sender);
        request
            .metadata_mut()
            .insert_bin("flo-actor-bin", actor.clone());
        request
    };
    let of_another_cluster = Sender {
        cluster_id: "another".to_owned(),
        ..sender.clone()
    };
    let refusal = at_peer_port.r#await(passed_on(&of_another_cluster)).await;
    let refusal = refusal.unwrap_err();
    assert!(refusal.message().contains("another"), "{refusal}");
    let response = at_peer_port.r#await(passed_on(&sender)).await;
    assert_eq!(
        refused(response),
        (Code::Unavailable, "not_leader".to_owned())
    );
    // The other calls of the service are not there.
    let mut heartbeat = Request::new(v1::HeartbeatRequest::default());
    *heartbeat.metadata_mut() = passed_on(&sender).metadata().clone();
    let heartbeat = at_peer_port.heartbeat(heartbeat).await;
    assert_eq!(heartbeat.unwrap_err().code(), Code::Unimplemented);
    let anonymous = at_peer_port.r#await(awaiting("w", 1)).await;
    assert_eq!(anonymous.unwrap_err().code(), Code::Unavailable);
    let response = follower.workers().r#await(awaiting("w", 1)).await.unwrap();
    assert_eq!(response.into_inner().tasks.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_is_answered_with_the_workers_status() {
    let node = Node::start().await;
    register(&node, "w", BTreeMap::new()).await;
    let heartbeat = async |current_load| {
        let request = v1::HeartbeatRequest {
            worker_id: "w".to_owned(),
            incarnation: 1,
            current_load,
            ..v1::HeartbeatRequest::default()
        };
        let response = node.workers().heartbeat(request).await.unwrap();
        response.into_inner().status()
    };
    assert_eq!(heartbeat(0).await, v1::WorkerStatus::Idle);
    assert_eq!(heartbeat(3).await, v1::WorkerStatus::Active);
    drain(&node, None).await.unwrap();
    assert_eq!(heartbeat(0).await, v1::WorkerStatus::Draining);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_ends_when_its_worker_is_drained_but_not_by_a_process_that_was_replaced() {
    let node = Node::start().await;
    register(&node, "w", BTreeMap::new()).await;
    let mut client = node.workers();
    let waiting = tokio::spawn(async move { client.r#await(awaiting("w", 1)).await });
    assert_eq!(
        refused(drain(&node, Some(9)).await),
        (Code::FailedPrecondition, "worker_replaced".to_owned())
    );
    drain(&node, Some(1)).await.unwrap();
    let response = waiting.await.unwrap().unwrap().into_inner();
    assert!(response.draining && response.tasks.is_empty());
    invoke(&node, String::new(), BTreeMap::new()).await;
    let request = node.workers().r#await(awaiting("w", 1)).await;
    let response = request.unwrap().into_inner();
    assert!(response.draining && response.tasks.is_empty());
}

async fn drain(
    node: &Node,
    incarnation: Option<u64>,
) -> Result<tonic::Response<v1::DrainResponse>, Status> {
    let request = v1::DrainRequest {
        worker_id: "w".to_owned(),
        incarnation,
        ..v1::DrainRequest::default()
    };
    node.workers().drain(request).await
}

/// Gives this many large tasks to a worker, which then disconnects.
async fn lease(node: &Node, worker: &str, count: u64) -> Vec<v1::TaskAssignment> {
    let mut stream = Stream::handshake_result(node, worker, 1).await;
    let mut tasks = Vec::new();
    for received in 1..=count {
        let input = format!("\"{}\"", "x".repeat(1 << 19));
        invoke(node, input, BTreeMap::new()).await;
        tasks.push(stream.task().await);
        let max_tasks_total = received + 1;
        stream
            .say(Message::Slots(v1::WorkerSlots { max_tasks_total }))
            .await;
    }
    tasks
}

async fn action_run(node: &Node, id: &str) -> v1::ActionRun {
    let request = v1::GetActionRunRequest {
        action_run_id: id.to_owned(),
        ..v1::GetActionRunRequest::default()
    };
    let found = node.actions().get_action_run(request).await;
    found.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_does_not_read_keeps_its_leases_and_is_heard() {
    let node = Node::start().await;
    register(&node, "w", BTreeMap::new()).await;
    // More than the connection and the node hold for a worker that does not read.
    let tasks = lease(&node, "w", 40).await;
    let [touched, ended] = [&tasks[0], &tasks[1]];
    let found = action_run(&node, &touched.action_run_id).await;
    let lease_end = found.lease_expires_at_ms.unwrap();

    let stream = Stream::open(&node).await;
    let hello = v1::WorkerHello {
        held_task_tokens: vec![touched.task_token.clone(), ended.task_token.clone()],
        ..hello("w")
    };
    stream.say(Message::Hello(hello)).await;
    let touch = v1::TaskTouch {
        task_token: touched.task_token.clone(),
        extend_ms: 3_600_000,
    };
    stream.say_numbered(1, Message::Touch(touch)).await;
    let completion = v1::TaskCompletion {
        task_token: ended.task_token.clone(),
        ..v1::TaskCompletion::default()
    };
    stream
        .say_numbered(2, Message::Completion(completion))
        .await;
    until("the lease to be extended", async || {
        let found = action_run(&node, &touched.action_run_id).await;
        (found.lease_expires_at_ms? > lease_end).then_some(())
    })
    .await;
    until("the report to be accepted", async || {
        let found = action_run(&node, &ended.action_run_id).await;
        (found.status() == v1::ActionRunStatus::Completed).then_some(())
    })
    .await;
}

/// Opens a worker's stream in `namespace` and sends its hello; returns the stream and the response.
async fn say_hello(
    node: &Node,
    namespace: &str,
    worker: &str,
) -> (Stream, Result<Option<Said>, Status>) {
    let request = v1::RegisterRequest {
        namespace: namespace.to_owned(),
        worker_id: worker.to_owned(),
        incarnation: 1,
        ..v1::RegisterRequest::default()
    };
    node.workers().register(request).await.unwrap();
    let mut stream = Stream::open(node).await;
    let hello = v1::WorkerHello {
        namespace: namespace.to_owned(),
        ..hello(worker)
    };
    stream.say(Message::Hello(hello)).await;
    let answer = stream.receive().await;
    (stream, answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_many_worker_streams_leaves_others_their_share() {
    // 8 MiB hold 341 streams. Any namespace may use the first seven eighths.
    const STREAMS: usize = 341 / 8 * 7;
    let node = Node::start_with(|config| config.max_memory_bytes = Some(256 << 20)).await;
    let request = v1::CreateNamespaceRequest {
        name: "quiet".to_owned(),
        ..v1::CreateNamespaceRequest::default()
    };
    node.namespaces().create_namespace(request).await.unwrap();
    let mut streams = Vec::new();
    for number in 0..STREAMS {
        let (stream, answer) = say_hello(&node, "default", &format!("w-{number}")).await;
        assert!(matches!(answer, Ok(Some(Said::HelloOk(_)))), "{number}");
        streams.push(stream);
    }
    let (_, answer) = say_hello(&node, "default", "one-more").await;
    let overloaded = (Code::ResourceExhausted, "overloaded".to_owned());
    assert_eq!(refused(answer), overloaded);
    let (_quiet, answer) = say_hello(&node, "quiet", "w").await;
    assert!(matches!(answer, Ok(Some(Said::HelloOk(_)))));
    drop(streams);
    until("the permits to be returned", async || {
        let (_, answer) = say_hello(&node, "default", "one-more").await;
        matches!(answer, Ok(Some(Said::HelloOk(_)))).then_some(())
    })
    .await;
}
