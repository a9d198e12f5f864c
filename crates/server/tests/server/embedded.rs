//! The embedded workers: which tasks they take, and how they stand in the registry.

use crate::node::Node;
use flotilla_api::v1;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::time::sleep;
use tonic::Request;
use v1::worker_service_client::WorkerServiceClient;

/// The only node of a cluster is this worker.
const WORKER: &str = "flo-node-1";

/// Answers every input with `[1]`.
const QUICK: &str = r#"(module
    (memory (export "memory") 1)
    (data (i32.const 16) "[1]")
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "handle") (param i32 i32) (result i64)
        i64.const 68719476739))"#;

/// Never answers.
const ENDLESS: &str = r#"(module
    (memory (export "memory") 1)
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "handle") (param i32 i32) (result i64)
        (loop $again (br $again))
        unreachable))"#;

/// Registers a WASM action `a` in a namespace, whose tasks have one attempt.
async fn register(node: &Node, namespace: &str, (module, timeout_ms): (&str, u64)) {
    let asked = v1::RegisterActionRequest {
        namespace: namespace.to_owned(),
        name: "a".to_owned(),
        r#type: v1::ActionType::Wasm.into(),
        wasm_module: module.to_owned().into(),
        timeout_ms: Some(timeout_ms),
        max_retries: Some(0),
        ..Default::default()
    };
    node.actions().register_action(asked).await.unwrap();
}

/// Invokes the action `a` of a namespace; with `wait`, to its end.
async fn invoke(node: &Node, namespace: &str, wait: bool) -> v1::InvokeActionResponse {
    let asked = v1::InvokeActionRequest {
        namespace: namespace.to_owned(),
        name: "a".to_owned(),
        wait,
        ..Default::default()
    };
    let mut request = Request::new(asked);
    request.set_timeout(Duration::from_secs(60));
    node.actions()
        .invoke_action(request)
        .await
        .unwrap()
        .into_inner()
}

async fn outcome(node: &Node, namespace: &str) -> Option<String> {
    invoke(node, namespace, true).await.run.unwrap().outcome
}

async fn status(node: &Node, namespace: &str, action_run_id: &str) -> v1::ActionRunStatus {
    let asked = v1::GetActionRunRequest {
        namespace: namespace.to_owned(),
        action_run_id: action_run_id.to_owned(),
        ..Default::default()
    };
    let run = node.actions().get_action_run(asked).await.unwrap();
    run.into_inner().status()
}

async fn worker(node: &Node) -> v1::WorkerRecord {
    let asked = v1::GetWorkerRequest {
        worker_id: WORKER.to_owned(),
        ..Default::default()
    };
    WorkerServiceClient::new(node.channel())
        .get_worker(asked)
        .await
        .unwrap()
        .into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_are_run_after_a_restart_of_the_node() {
    let node = Node::start().await;
    register(&node, "", (QUICK, 30_000)).await;
    assert_eq!(outcome(&node, "").await.as_deref(), Some("success"));
    let node = node.restart().await;
    assert_eq!(outcome(&node, "").await.as_deref(), Some("success"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_node_stays_drained_when_its_modules_change() {
    let node = Node::start().await;
    register(&node, "", (QUICK, 30_000)).await;
    assert_eq!(outcome(&node, "").await.as_deref(), Some("success"));
    let asked = v1::DrainRequest {
        worker_id: WORKER.to_owned(),
        ..Default::default()
    };
    let mut workers = WorkerServiceClient::new(node.channel());
    workers.drain(asked).await.unwrap();
    let before = worker(&node).await;
    assert_eq!(before.status(), v1::WorkerStatus::Draining);

    let other = v1::RegisterActionRequest {
        name: "b".to_owned(),
        r#type: v1::ActionType::Wasm.into(),
        wasm_module: QUICK.into(),
        ..Default::default()
    };
    node.actions().register_action(other).await.unwrap();
    // The node tells of its new module on a new stream, and that it lives.
    let after = loop {
        let worker = worker(&node).await;
        if worker.last_heartbeat_at_ms > before.last_heartbeat_at_ms {
            break worker;
        }
        sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(after.status(), v1::WorkerStatus::Draining);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_node_leaves_tasks_of_other_namespaces_in_the_queue() {
    let node = Node::start().await;
    register(&node, "busy", (ENDLESS, 3_000)).await;
    register(&node, "quick", (QUICK, 30_000)).await;
    // The node's worker in this namespace is at work from here on.
    assert_eq!(outcome(&node, "quick").await.as_deref(), Some("success"));
    let mut busy = Vec::new();
    for _ in 0..available_parallelism().unwrap().get() {
        let action_run_id = invoke(&node, "busy", false).await.action_run_id;
        while status(&node, "busy", &action_run_id).await == v1::ActionRunStatus::Pending {
            sleep(Duration::from_millis(1)).await;
        }
        busy.push(action_run_id);
    }
    let waiting = invoke(&node, "quick", false).await.action_run_id;
    let found = status(&node, "quick", &waiting).await;
    let mut are_all_running = true;
    for action_run_id in &busy {
        let status = status(&node, "busy", action_run_id).await;
        are_all_running &= status == v1::ActionRunStatus::Running;
    }
    // On a slow machine a slot may be free again by now: then this shows nothing.
    assert!(
        found == v1::ActionRunStatus::Pending || !are_all_running,
        "every slot was taken, and one more task was taken all the same: {found:?}"
    );
    assert_eq!(outcome(&node, "quick").await.as_deref(), Some("success"));
}
