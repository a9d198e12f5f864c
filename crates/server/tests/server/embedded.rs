//! The embedded workers: which tasks they take, what these can reach, and their entries in the
//! registry.

use crate::node::Node;
use crate::wait::until;
use flotilla_api::v1;
use std::thread::available_parallelism;
use std::time::Duration;
use tonic::{Code, Request};
use v1::worker_service_client::WorkerServiceClient;

/// The worker of the cluster's only node.
const WORKER: &str = "flo-node-1";

/// Returns `[1]` for every input.
const QUICK: &str = r#"(module
    (memory (export "memory") 1)
    (data (i32.const 16) "[1]")
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "handle") (param i32 i32) (result i64)
        i64.const 68719476739))"#;

/// Sets the key `written` to `a`, waits for the key `gate`, and returns `[1]`.
const GATED: &str = r#"(module
    (import "flo" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
    (import "flo" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 16) "[1]writtenagate")
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "handle") (param i32 i32) (result i64)
        (local $found i32)
        (if (call $kv_set (i32.const 19) (i32.const 7) (i32.const 26) (i32.const 1))
            (then unreachable))
        (loop $again
            (local.set $found
                (call $kv_get (i32.const 27) (i32.const 4) (i32.const 64) (i32.const 8)))
            (br_if $again (i32.eq (local.get $found) (i32.const -1))))
        (if (i32.lt_s (local.get $found) (i32.const 0)) (then unreachable))
        i64.const 68719476739))"#;

/// Moves the value of the key `in` to the key `out` and returns it; fails without one.
const MOVING: &str = r#"(module
    (import "flo" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
    (import "flo" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
    (import "flo" "kv_delete" (func $kv_delete (param i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 16) "inout")
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "handle") (param i32 i32) (result i64)
        (local $length i32)
        (local.set $length
            (call $kv_get (i32.const 16) (i32.const 2) (i32.const 64) (i32.const 64)))
        (if (i32.lt_s (local.get $length) (i32.const 0)) (then (return (i64.const -3))))
        (if (call $kv_set (i32.const 18) (i32.const 3) (i32.const 64) (local.get $length))
            (then unreachable))
        (if (call $kv_delete (i32.const 16) (i32.const 2)) (then unreachable))
        (i64.or (i64.const 0x4000000000) (i64.extend_i32_u (local.get $length)))))"#;

/// Registers a WASM action `a` in a namespace, whose tasks have one attempt.
async fn register(node: &Node, namespace: &str, module: &str, timeout_ms: u64) {
    let request = v1::RegisterActionRequest {
        namespace: namespace.to_owned(),
        name: "a".to_owned(),
        r#type: v1::ActionType::Wasm.into(),
        wasm_module: module.to_owned().into(),
        timeout_ms: Some(timeout_ms),
        max_retries: Some(0),
        ..Default::default()
    };
    node.actions().register_action(request).await.unwrap();
}

/// Invokes the action `a` of a namespace; with `wait`, to its end.
async fn invoke(node: &Node, namespace: &str, wait: bool) -> v1::InvokeActionResponse {
    let request = v1::InvokeActionRequest {
        namespace: namespace.to_owned(),
        name: "a".to_owned(),
        wait,
        ..Default::default()
    };
    let mut request = Request::new(request);
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
    let request = v1::GetActionRunRequest {
        namespace: namespace.to_owned(),
        action_run_id: action_run_id.to_owned(),
        ..Default::default()
    };
    let run = node.actions().get_action_run(request).await.unwrap();
    run.into_inner().status()
}

async fn worker(node: &Node) -> v1::WorkerRecord {
    let request = v1::GetWorkerRequest {
        worker_id: WORKER.to_owned(),
        ..Default::default()
    };
    WorkerServiceClient::new(node.channel())
        .get_worker(request)
        .await
        .unwrap()
        .into_inner()
}

/// Waits until the tasks of the action runs are leased.
async fn await_running(node: &Node, namespace: &str, action_run_ids: &[String]) {
    for action_run_id in action_run_ids {
        until("a worker to take the task", async || {
            let status = status(node, namespace, action_run_id).await;
            (status == v1::ActionRunStatus::Running).then_some(())
        })
        .await;
    }
}

/// Waits until the module [`GATED`] is running.
async fn await_writing(node: &Node, namespace: &str) {
    until("the module to write", async || {
        get(node, namespace, "written").await
    })
    .await;
}

async fn end_of(node: &Node, namespace: &str, action_run_id: &str) -> v1::ActionRun {
    let request = v1::GetActionRunRequest {
        namespace: namespace.to_owned(),
        action_run_id: action_run_id.to_owned(),
        wait_ms: 60_000,
    };
    let mut request = Request::new(request);
    request.set_timeout(Duration::from_secs(60));
    let run = node.actions().get_action_run(request).await.unwrap();
    run.into_inner()
}

async fn set(node: &Node, namespace: &str, key: &str, value: &str) {
    let request = v1::SetKeyRequest {
        namespace: namespace.to_owned(),
        key: key.to_owned(),
        value: value.to_owned().into(),
        ..Default::default()
    };
    node.keys().set_key(request).await.unwrap();
}

/// The value of a key, if it exists.
async fn get(node: &Node, namespace: &str, key: &str) -> Option<String> {
    let request = v1::GetKeyRequest {
        namespace: namespace.to_owned(),
        key: key.to_owned(),
    };
    match node.keys().get_key(request).await {
        Ok(found) => {
            let value = found.into_inner().item.unwrap().value;
            Some(String::from_utf8(value.into()).unwrap())
        }
        Err(status) if status.code() == Code::NotFound => None,
        Err(status) => panic!("{status}"),
    }
}

async fn delete_action(node: &Node, namespace: &str) {
    let request = v1::DeleteActionRequest {
        namespace: namespace.to_owned(),
        name: "a".to_owned(),
        ..Default::default()
    };
    node.actions().delete_action(request).await.unwrap();
}

/// Waits until a namespace has no registered worker.
async fn await_no_worker(node: &Node, namespace: &str) {
    until("the last worker to go", async || {
        let request = v1::ListWorkersRequest {
            namespace: namespace.to_owned(),
            ..Default::default()
        };
        let listed = node.workers().list_workers(request).await.unwrap();
        listed.into_inner().items.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_reads_and_writes_the_keys_of_its_own_namespace() {
    let node = Node::start().await;
    for namespace in ["one", "two"] {
        register(&node, namespace, MOVING, 30_000).await;
    }
    set(&node, "one", "in", "7").await;
    assert_eq!(outcome(&node, "two").await.as_deref(), Some("failure"));
    let moved = invoke(&node, "one", true).await.run.unwrap();
    assert_eq!(moved.output.as_deref(), Some(&b"7"[..]));
    assert_eq!(get(&node, "one", "in").await, None);
    assert_eq!(get(&node, "one", "out").await.as_deref(), Some("7"));
    assert_eq!(get(&node, "two", "out").await, None);
    // The value was moved away, so the next run fails.
    assert_eq!(outcome(&node, "one").await.as_deref(), Some("failure"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_attempt_has_written_is_not_written_again_when_it_is_handed_out_again() {
    let node = Node::start().await;
    register(&node, "", GATED, 60_000).await;
    let action_run_id = invoke(&node, "", false).await.action_run_id;
    await_writing(&node, "").await;
    set(&node, "", "written", "by another").await;

    let node = node.restart().await;
    set(&node, "", "gate", "open").await;
    let run = end_of(&node, "", &action_run_id).await;
    assert_eq!((run.outcome.as_deref(), run.attempts), (Some("success"), 1));
    let written = get(&node, "", "written").await;
    assert_eq!(written.as_deref(), Some("by another"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_a_worker_of_a_namespace_without_modules() {
    let node = Node::start().await;
    register(&node, "shop", QUICK, 30_000).await;
    assert_eq!(outcome(&node, "shop").await.as_deref(), Some("success"));
    delete_action(&node, "shop").await;
    await_no_worker(&node, "shop").await;
    register(&node, "shop", QUICK, 30_000).await;
    assert_eq!(outcome(&node, "shop").await.as_deref(), Some("success"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_finishes_its_tasks_before_it_leaves_a_namespace() {
    let node = Node::start().await;
    register(&node, "shop", GATED, 60_000).await;
    let action_run_id = invoke(&node, "shop", false).await.action_run_id;
    // Until then it may run without the module, which is deleted with its action.
    await_writing(&node, "shop").await;
    delete_action(&node, "shop").await;
    set(&node, "shop", "gate", "open").await;
    let run = end_of(&node, "shop", &action_run_id).await;
    assert_eq!(run.outcome.as_deref(), Some("success"));
    await_no_worker(&node, "shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_leaves_a_namespace_that_lost_its_modules_in_an_earlier_life() {
    let node = Node::start().await;
    register(&node, "shop", GATED, 60_000).await;
    invoke(&node, "shop", false).await;
    await_writing(&node, "shop").await;
    // The task keeps the node registered until it stops.
    delete_action(&node, "shop").await;
    let node = node.restart().await;
    await_no_worker(&node, "shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_are_run_after_a_restart_of_the_node() {
    let node = Node::start().await;
    register(&node, "", QUICK, 30_000).await;
    assert_eq!(outcome(&node, "").await.as_deref(), Some("success"));
    let node = node.restart().await;
    assert_eq!(outcome(&node, "").await.as_deref(), Some("success"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_node_stays_drained_when_its_modules_change() {
    let node = Node::start().await;
    register(&node, "", QUICK, 30_000).await;
    assert_eq!(outcome(&node, "").await.as_deref(), Some("success"));
    let request = v1::DrainRequest {
        worker_id: WORKER.to_owned(),
        ..Default::default()
    };
    let mut workers = WorkerServiceClient::new(node.channel());
    workers.drain(request).await.unwrap();
    let before = worker(&node).await;
    assert_eq!(before.status(), v1::WorkerStatus::Draining);

    let other = v1::RegisterActionRequest {
        name: "b".to_owned(),
        r#type: v1::ActionType::Wasm.into(),
        wasm_module: QUICK.into(),
        ..Default::default()
    };
    node.actions().register_action(other).await.unwrap();
    // The node reports its new module on a new stream, and sends a heartbeat.
    let after = until("another heartbeat", async || {
        let worker = worker(&node).await;
        (worker.last_heartbeat_at_ms > before.last_heartbeat_at_ms).then_some(worker)
    })
    .await;
    assert_eq!(after.status(), v1::WorkerStatus::Draining);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_holds_all_slots_leaves_others_one_more() {
    let node = Node::start().await;
    for (namespace, module) in [("busy", GATED), ("quick", QUICK)] {
        register(&node, namespace, module, 60_000).await;
    }
    // From here on, both of the node's workers have their streams.
    set(&node, "busy", "gate", "open").await;
    for namespace in ["busy", "quick"] {
        assert_eq!(outcome(&node, namespace).await.as_deref(), Some("success"));
    }
    close(&node, "busy").await;
    let slots = available_parallelism().unwrap().get();
    let busy = invoke_all(&node, "busy", slots).await;
    await_running(&node, "busy", &busy).await;

    // Each slot is taken until the gate opens.
    let quick = invoke_all(&node, "quick", slots + 2).await;
    for action_run_id in &quick {
        let run = end_of(&node, "quick", action_run_id).await;
        assert_eq!(run.outcome.as_deref(), Some("success"));
    }
    await_running(&node, "busy", &busy).await;
    set(&node, "busy", "gate", "open").await;
    for action_run_id in &busy {
        let run = end_of(&node, "busy", action_run_id).await;
        assert_eq!(run.outcome.as_deref(), Some("success"));
    }
}

async fn invoke_all(node: &Node, namespace: &str, count: usize) -> Vec<String> {
    let mut action_run_ids = Vec::new();
    for _ in 0..count {
        action_run_ids.push(invoke(node, namespace, false).await.action_run_id);
    }
    action_run_ids
}

/// Closes the gate again.
async fn close(node: &Node, namespace: &str) {
    let request = v1::DeleteKeyRequest {
        namespace: namespace.to_owned(),
        key: "gate".to_owned(),
        ..Default::default()
    };
    node.keys().delete_key(request).await.unwrap();
}

/// The namespace of the two whose module [`GATED`] is running.
async fn writing(node: &Node) -> usize {
    until("a module to write", async || {
        for (position, namespace) in ["one", "two"].into_iter().enumerate() {
            if get(node, namespace, "written").await.is_some() {
                return Some(position);
            }
        }
        None
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_until_there_is_memory_for_it_and_no_slot_is_held_meanwhile() {
    // Two slots, and memory for one call with the default limits.
    let node = Node::start_with(|config| {
        config.wasm_slots = Some(2);
        config.max_wasm_memory_bytes = Some(30 << 20);
    })
    .await;
    let namespaces = ["one", "two"];
    let mut runs = Vec::new();
    for namespace in namespaces {
        register(&node, namespace, GATED, 60_000).await;
        runs.extend(invoke_all(&node, namespace, 1).await);
        await_running(&node, namespace, &runs[runs.len() - 1..]).await;
    }
    let first = writing(&node).await;
    let second = 1 - first;
    assert_eq!(get(&node, namespaces[second], "written").await, None);
    for position in [first, second] {
        let namespace = namespaces[position];
        set(&node, namespace, "gate", "open").await;
        let run = end_of(&node, namespace, &runs[position]).await;
        assert_eq!((run.outcome.as_deref(), run.attempts), (Some("success"), 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_may_take_more_memory_than_all_calls_fails_for_good() {
    let node = Node::start_with(|config| config.max_wasm_memory_bytes = Some(30 << 20)).await;
    let request = v1::RegisterActionRequest {
        name: "a".to_owned(),
        r#type: v1::ActionType::Wasm.into(),
        wasm_module: QUICK.into(),
        max_memory_bytes: Some(64 << 20),
        ..Default::default()
    };
    node.actions().register_action(request).await.unwrap();
    let run = invoke(&node, "", true).await.run.unwrap();
    assert_eq!(run.outcome.as_deref(), Some("execution_failure"));
    assert_eq!(run.attempts, 1);
    let error = run.error_message.unwrap();
    assert!(
        error.contains("31457280 bytes, the node's memory"),
        "{error}"
    );
}
