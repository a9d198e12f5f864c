//! Nodes that an operator drains.

use crate::node::{APPROVAL, Node, refused, start_of};
use crate::wait::until;
use crate::web::get;
use flotilla_api::v1;
use std::time::Duration;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request};
use v1::worker_message::Message;

/// Longer than anything here takes, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for the key `gate` and returns `[1]`.
const GATED: &str = r#"(module
    (import "flo" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 16) "[1]gate")
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "handle") (param i32 i32) (result i64)
        (local $found i32)
        (loop $again
            (local.set $found
                (call $kv_get (i32.const 19) (i32.const 4) (i32.const 64) (i32.const 8)))
            (br_if $again (i32.eq (local.get $found) (i32.const -1))))
        (if (i32.lt_s (local.get $found) (i32.const 0)) (then unreachable))
        i64.const 68719476739))"#;

async fn drain(via: &Node, node_id: u64) -> bool {
    let request = v1::DrainNodeRequest { node_id };
    let drained = via.cluster().drain_node(request).await;
    drained.unwrap().into_inner().changed
}

async fn undrain(via: &Node, node_id: u64) -> bool {
    let request = v1::UndrainNodeRequest { node_id };
    let undrained = via.cluster().undrain_node(request).await;
    undrained.unwrap().into_inner().changed
}

async fn cluster_status(node: &Node) -> v1::ClusterStatus {
    let status = node.cluster().get_status(v1::GetStatusRequest {}).await;
    status.unwrap().into_inner()
}

/// The ids of the leader and of a follower.
async fn leader_and_follower(nodes: &[Node]) -> (u64, u64) {
    let leader = until("a leader", async || {
        cluster_status(&nodes[0]).await.leader_id
    })
    .await;
    (leader, leader % 3 + 1)
}

fn node(nodes: &[Node], node_id: u64) -> &Node {
    &nodes[usize::try_from(node_id).unwrap() - 1]
}

/// Whether the node says that it is ready, with its response.
async fn is_ready(node: &Node) -> (bool, String) {
    let (status, body) = get(&node.http_address, "/readyz").await;
    (status == 200, body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_node_sends_callers_that_wait_elsewhere_and_still_serves() {
    let nodes = Node::start_cluster().await;
    let (leader, follower) = leader_and_follower(&nodes).await;
    let drained = node(&nodes, follower);
    drained.create(APPROVAL).await;
    let run_id = drained.run(start_of("approval", "")).await.run_id;
    let watch = || {
        let request = v1::WatchRunRequest {
            run_id: run_id.clone(),
            ..Default::default()
        };
        async move { drained.workflows().watch_run(request).await }
    };
    let mut updates = watch().await.unwrap().into_inner();
    let ended = async {
        loop {
            if let Err(status) = updates.message().await {
                return status;
            }
        }
    };
    assert!(drain(node(&nodes, leader), follower).await);
    assert!(!drain(drained, follower).await);
    let status = timeout(TIMEOUT, ended).await.expect("the watch ends");
    let is_drained = (Code::Unavailable, "node_drained".to_owned());
    assert_eq!(refused::<()>(Err(status)), is_drained);

    let (ready, why) = is_ready(drained).await;
    assert!(!ready && why.contains("node_drained"), "{why}");
    let shown = cluster_status(drained).await.nodes;
    let shown = shown.into_iter().filter(|node| node.drained);
    let ids: Vec<u64> = shown.map(|node| node.node_id).collect();
    assert_eq!(ids, [follower]);

    drained.signal(&run_id, "{}").await.unwrap();
    let status = drained.status(&run_id).await.status();
    assert_eq!(status, v1::RunStatus::Completed);
    let wait = v1::StartRunRequest {
        wait: true,
        ..start_of("approval", "")
    };
    assert_eq!(
        drained.run(wait).await.end,
        None,
        "the wait ends immediately"
    );

    assert!(undrain(node(&nodes, leader), follower).await);
    assert!(is_ready(drained).await.0);
    assert!(watch().await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_leave_a_leader_that_is_drained_for_the_next_one() {
    let nodes = Node::start_cluster().await;
    let (leader, follower) = leader_and_follower(&nodes).await;
    let drained = node(&nodes, leader);
    let register = v1::RegisterRequest {
        worker_id: "w".to_owned(),
        incarnation: 1,
        ..Default::default()
    };
    drained.workers().register(register).await.unwrap();
    let (outgoing, messages) = tokio::sync::mpsc::channel(4);
    let mut workers = drained.workers();
    let opened = workers.stream(ReceiverStream::new(messages)).await;
    let mut incoming = opened.unwrap().into_inner();
    let hello = v1::WorkerMessage {
        sequence: 1,
        message: Some(Message::Hello(v1::WorkerHello {
            worker_id: "w".to_owned(),
            incarnation: 1,
            ..Default::default()
        })),
    };
    outgoing.send(hello).await.unwrap();
    assert!(incoming.message().await.unwrap().is_some());
    let poll = v1::AwaitRequest {
        worker_id: "w".to_owned(),
        incarnation: 1,
        wait_ms: Some(300_000),
        ..Default::default()
    };

    assert!(drain(node(&nodes, follower), leader).await);
    let ended = timeout(TIMEOUT, incoming.message()).await.unwrap();
    assert_eq!(refused(ended), (Code::Unavailable, "not_leader".to_owned()));
    // It does not forward polls either: the worker polls at another node.
    let polled = timeout(TIMEOUT, workers.r#await(poll)).await.unwrap();
    assert_eq!(
        refused(polled),
        (Code::Unavailable, "node_drained".to_owned())
    );
    let (next, _) = leader_and_follower(&nodes).await;
    assert_ne!(next, leader);
}

/// The node whose embedded worker runs the task of an action run.
async fn holder(via: &Node, action_run_id: &str) -> Option<u64> {
    let request = v1::GetActionRunRequest {
        action_run_id: action_run_id.to_owned(),
        ..Default::default()
    };
    let found = via.actions().get_action_run(request).await.ok()?;
    let found = found.into_inner();
    let is_running = found.status() == v1::ActionRunStatus::Running;
    let worker_id = found.worker_id.filter(|_| is_running)?;
    worker_id.strip_prefix("flo-node-")?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_drained_nodes_embedded_worker_continue_on_others() {
    let nodes = Node::start_cluster().await;
    let (leader, _) = leader_and_follower(&nodes).await;
    let via = node(&nodes, leader);
    let action = v1::RegisterActionRequest {
        name: "a".to_owned(),
        r#type: v1::ActionType::Wasm.into(),
        wasm_module: GATED.to_owned().into(),
        timeout_ms: Some(300_000),
        max_retries: Some(0),
        ..Default::default()
    };
    via.actions().register_action(action).await.unwrap();
    let invocation = v1::InvokeActionRequest {
        name: "a".to_owned(),
        ..Default::default()
    };
    let invoked = via.actions().invoke_action(invocation).await.unwrap();
    let id = invoked.into_inner().action_run_id;
    let first = until("a node to take the task", async || holder(via, &id).await).await;
    assert!(drain(via, first).await);
    let other = until("another node to take the task", async || {
        holder(via, &id).await.filter(|found| *found != first)
    })
    .await;
    let gate = v1::SetKeyRequest {
        key: "gate".to_owned(),
        value: "1".to_owned().into(),
        ..Default::default()
    };
    node(&nodes, other).keys().set_key(gate).await.unwrap();
    let wait = v1::GetActionRunRequest {
        action_run_id: id,
        wait_ms: 60_000,
        ..Default::default()
    };
    let mut wait = Request::new(wait);
    wait.set_timeout(TIMEOUT);
    let ended = node(&nodes, other).actions().get_action_run(wait).await;
    let ended = ended.unwrap().into_inner();
    assert_eq!(ended.status(), v1::ActionRunStatus::Completed);
}
