//! Actions: registering, invoking and awaiting them.

use crate::node::{Node, refused};
use flotilla_api::v1;
use tonic::{Code, Request};

/// Returns `[1]` for every input.
const MODULE: &str = r#"(module
    (memory (export "memory") 1)
    (data (i32.const 16) "[1]")
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "handle") (param i32 i32) (result i64)
        i64.const 68719476739))"#;

fn registration(name: &str) -> v1::RegisterActionRequest {
    v1::RegisterActionRequest {
        name: name.to_owned(),
        ..Default::default()
    }
}

fn invocation(name: &str) -> v1::InvokeActionRequest {
    v1::InvokeActionRequest {
        name: name.to_owned(),
        ..Default::default()
    }
}

async fn register(node: &Node, request: v1::RegisterActionRequest) -> v1::RegisterActionResponse {
    node.actions()
        .register_action(request)
        .await
        .unwrap()
        .into_inner()
}

async fn invoke(node: &Node, request: v1::InvokeActionRequest) -> v1::InvokeActionResponse {
    node.actions()
        .invoke_action(request)
        .await
        .unwrap()
        .into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_has_a_new_version_with_each_change() {
    let node = Node::start().await;
    let first = register(&node, registration("charge")).await;
    let action = first.action.unwrap();
    assert_eq!(
        (first.changed, action.version, action.enabled),
        (true, 1, true)
    );
    assert_eq!(
        (action.timeout_ms, action.max_retries, action.retry_delay_ms),
        (30_000, 3, 1_000)
    );
    assert!(!register(&node, registration("charge")).await.changed);
    let slower = v1::RegisterActionRequest {
        timeout_ms: Some(60_000),
        ..registration("charge")
    };
    let missing = v1::RegisterActionRequest {
        only_if_missing: true,
        ..slower.clone()
    };
    assert!(!register(&node, missing).await.changed);
    let changed = register(&node, slower).await.action.unwrap();
    assert_eq!((changed.version, changed.timeout_ms), (2, 60_000));

    register(&node, registration("audit")).await;
    let listed = node
        .actions()
        .list_actions(v1::ListActionsRequest::default())
        .await
        .unwrap();
    let names = listed
        .into_inner()
        .items
        .into_iter()
        .map(|action| action.name);
    assert_eq!(names.collect::<Vec<_>>(), ["audit", "charge"]);
    let named = || "charge".to_owned();
    let deletion = || v1::DeleteActionRequest {
        name: named(),
        ..Default::default()
    };
    assert!(
        node.actions()
            .delete_action(deletion())
            .await
            .unwrap()
            .into_inner()
            .deleted
    );
    assert!(
        !node
            .actions()
            .delete_action(deletion())
            .await
            .unwrap()
            .into_inner()
            .deleted
    );
    let gone = v1::GetActionRequest {
        name: named(),
        ..Default::default()
    };
    let gone = node.actions().get_action(gone).await;
    assert_eq!(
        refused(gone),
        (Code::NotFound, "action_not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_action_is_not_invoked() {
    let node = Node::start().await;
    let name = || "charge".to_owned();
    let missing = node.actions().invoke_action(invocation("charge")).await;
    assert_eq!(
        refused(missing),
        (Code::NotFound, "action_not_found".to_owned())
    );
    register(&node, registration("charge")).await;
    let request = v1::DisableActionRequest {
        name: name(),
        ..Default::default()
    };
    node.actions().disable_action(request).await.unwrap();
    let disabled = node.actions().invoke_action(invocation("charge")).await;
    assert_eq!(
        refused(disabled),
        (Code::FailedPrecondition, "action_disabled".to_owned())
    );
    let request = v1::EnableActionRequest {
        name: name(),
        ..Default::default()
    };
    node.actions().enable_action(request).await.unwrap();
    invoke(&node, invocation("charge")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_without_a_worker_ends_with_the_run_as_it_is() {
    let node = Node::start().await;
    register(&node, registration("charge")).await;
    let keyed = v1::InvokeActionRequest {
        input: "[1]".into(),
        idempotency_key: "k".to_owned(),
        wait: true,
        ..invocation("charge")
    };
    let mut request = Request::new(keyed.clone());
    request.set_timeout(std::time::Duration::from_millis(500));
    let answer = node
        .actions()
        .invoke_action(request)
        .await
        .unwrap()
        .into_inner();
    let run = answer.run.unwrap();
    assert_eq!(
        (run.status(), run.attempts),
        (v1::ActionRunStatus::Pending, 0)
    );
    assert_eq!((run.input.as_ref(), run.priority), (&b"[1]"[..], 10));
    let again = invoke(
        &node,
        v1::InvokeActionRequest {
            wait: false,
            ..keyed
        },
    )
    .await;
    assert_eq!(
        (again.action_run_id.as_str(), again.existing),
        (run.action_run_id.as_str(), true)
    );
    assert_eq!(again.run, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_action_run_ends_once_and_says_why() {
    let node = Node::start().await;
    register(&node, registration("charge")).await;
    let run_id = invoke(&node, invocation("charge")).await.action_run_id;
    let cancel = v1::CancelActionRunRequest {
        action_run_id: run_id.clone(),
        reason: "ordered twice".to_owned(),
        ..Default::default()
    };
    let elsewhere = v1::CancelActionRunRequest {
        namespace: "other".to_owned(),
        ..cancel.clone()
    };
    let elsewhere = node.actions().cancel_action_run(elsewhere).await;
    assert_eq!(
        refused(elsewhere),
        (Code::NotFound, "action_run_not_found".to_owned())
    );
    node.actions()
        .cancel_action_run(cancel.clone())
        .await
        .unwrap();
    let request = v1::GetActionRunRequest {
        action_run_id: run_id,
        ..Default::default()
    };
    let run = node.actions().get_action_run(request).await.unwrap();
    let run = run.into_inner();
    assert_eq!(
        (run.status(), run.error_message.as_deref()),
        (v1::ActionRunStatus::Cancelled, Some("ordered twice"))
    );
    let again = node.actions().cancel_action_run(cancel).await;
    assert_eq!(
        refused(again),
        (Code::FailedPrecondition, "action_run_ended".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_run_is_read_after_a_wait_and_listed_without_its_payloads() {
    let node = Node::start().await;
    register(&node, registration("charge")).await;
    let run_id = invoke(&node, invocation("charge")).await.action_run_id;
    let request = v1::GetActionRunRequest {
        action_run_id: run_id.clone(),
        wait_ms: 1,
        ..Default::default()
    };
    let run = node
        .actions()
        .get_action_run(request.clone())
        .await
        .unwrap();
    assert_eq!(run.into_inner().status(), v1::ActionRunStatus::Pending);
    let elsewhere = v1::GetActionRunRequest {
        namespace: "other".to_owned(),
        ..request.clone()
    };
    let elsewhere = node.actions().get_action_run(elsewhere).await;
    assert_eq!(
        refused(elsewhere),
        (Code::NotFound, "action_run_not_found".to_owned())
    );
    let patient = v1::GetActionRunRequest {
        wait_ms: 300_001,
        ..request
    };
    assert_eq!(
        refused(node.actions().get_action_run(patient).await).0,
        Code::InvalidArgument
    );
    let request = v1::ListActionRunsRequest {
        name: "charge".to_owned(),
        ..Default::default()
    };
    let listed = node
        .actions()
        .list_action_runs(request)
        .await
        .unwrap()
        .into_inner()
        .items;
    assert_eq!((listed.len(), listed[0].input.len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_run_by_the_node_and_its_caller_gets_the_output() {
    let node = Node::start().await;
    let request = v1::RegisterActionRequest {
        r#type: v1::ActionType::Wasm.into(),
        wasm_module: MODULE.as_bytes().into(),
        ..registration("one")
    };
    let action = register(&node, request).await.action.unwrap();
    assert_eq!(action.r#type(), v1::ActionType::Wasm);
    assert!(action.wasm_module_bytes.is_some_and(|bytes| bytes > 0));
    let waiting = v1::InvokeActionRequest {
        wait: true,
        ..invocation("one")
    };
    let mut request = Request::new(waiting);
    request.set_timeout(std::time::Duration::from_secs(60));
    let answer = node
        .actions()
        .invoke_action(request)
        .await
        .unwrap()
        .into_inner();
    let run = answer.run.unwrap();
    assert_eq!(run.status(), v1::ActionRunStatus::Completed);
    assert_eq!(run.output.as_deref(), Some(&b"[1]"[..]));
    assert_eq!((run.outcome.as_deref(), run.attempts), (Some("success"), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_module_is_refused() {
    let node = Node::start().await;
    let request = v1::RegisterActionRequest {
        r#type: v1::ActionType::Wasm.into(),
        wasm_module: "(module)".into(),
        ..registration("one")
    };
    let broken = node.actions().register_action(request).await;
    assert_eq!(
        refused(broken),
        (Code::InvalidArgument, "module_invalid".to_owned())
    );
}
