//! Dead-letter queues, through the API.

use crate::node::{Node, refused};
use flotilla_api::v1;
use tonic::Code;

const FAILING: &str = r#"(module
    (memory (export "memory") 1)
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "handle") (param i32 i32) (result i64) unreachable))"#;

/// Returns `[1]` for every input.
const WORKING: &str = r#"(module
    (memory (export "memory") 1)
    (data (i32.const 16) "[1]")
    (func (export "alloc") (param i32) (result i32) i32.const 1024)
    (func (export "handle") (param i32 i32) (result i64)
        i64.const 68719476739))"#;

async fn register(node: &Node, module: &'static str) {
    let request = v1::RegisterActionRequest {
        name: "charge".to_owned(),
        r#type: v1::ActionType::Wasm.into(),
        wasm_module: module.as_bytes().into(),
        max_retries: Some(0),
        ..Default::default()
    };
    node.actions().register_action(request).await.unwrap();
}

/// Invokes the action and returns its action run once it has ended.
async fn invoke(node: &Node, input: &'static str) -> v1::ActionRun {
    let request = v1::InvokeActionRequest {
        name: "charge".to_owned(),
        input: input.into(),
        ..Default::default()
    };
    let invoked = node.actions().invoke_action(request).await.unwrap();
    ended(node, invoked.into_inner().action_run_id).await
}

async fn ended(node: &Node, action_run_id: String) -> v1::ActionRun {
    let request = v1::GetActionRunRequest {
        action_run_id,
        wait_ms: 60_000,
        ..Default::default()
    };
    let mut request = tonic::Request::new(request);
    request.set_timeout(std::time::Duration::from_secs(60));
    let run = node.actions().get_action_run(request).await.unwrap();
    run.into_inner()
}

async fn list(node: &Node) -> v1::ListDeadLettersResponse {
    let request = v1::ListDeadLettersRequest {
        action: "charge".to_owned(),
        ..Default::default()
    };
    let listed = node.actions().list_dead_letters(request).await.unwrap();
    listed.into_inner()
}

fn ids(listed: &v1::ListDeadLettersResponse) -> Vec<&str> {
    listed.items.iter().map(|item| item.id.as_str()).collect()
}

fn dead_letter(id: &str) -> v1::GetDeadLetterRequest {
    v1::GetDeadLetterRequest {
        action: "charge".to_owned(),
        id: id.to_owned(),
        ..Default::default()
    }
}

fn requeue_of(id: &str) -> v1::RequeueDeadLettersRequest {
    v1::RequeueDeadLettersRequest {
        action: "charge".to_owned(),
        id: id.to_owned(),
        request_id: vec![7; 16].into(),
        ..Default::default()
    }
}

fn purge_of(id: &str) -> v1::PurgeDeadLettersRequest {
    v1::PurgeDeadLettersRequest {
        action: "charge".to_owned(),
        id: id.to_owned(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_for_good_is_listed_and_shown_with_its_input() {
    let node = Node::start().await;
    register(&node, FAILING).await;
    assert_eq!(list(&node).await, v1::ListDeadLettersResponse::default());
    let first = invoke(&node, r#"{"n":1}"#).await;
    let second = invoke(&node, r#"{"n":2}"#).await;
    assert_eq!(first.status(), v1::ActionRunStatus::Failed);
    let listed = list(&node).await;
    let (first, second) = (first.action_run_id.as_str(), second.action_run_id.as_str());
    assert_eq!(ids(&listed), [second, first]);
    assert_eq!((listed.dead_letter_count, listed.dropped_count), (2, 0));
    assert!(listed.items.iter().all(|item| item.input.is_empty()));

    let shown = node
        .actions()
        .get_dead_letter(dead_letter(first))
        .await
        .unwrap();
    let shown = shown.into_inner();
    assert_eq!(shown.input.as_ref(), br#"{"n":1}"#);
    assert_eq!((shown.attempts, shown.action.as_str()), (1, "charge"));
    assert!(!shown.error_message.is_empty());
    assert_eq!((shown.run_id, shown.step), (None, None));
    let missing = (Code::NotFound, "dead_letter_not_found".to_owned());
    for id in ["arun-99", "nothing"] {
        let unknown = node.actions().get_dead_letter(dead_letter(id)).await;
        assert_eq!(refused(unknown), missing);
        let unknown = node.actions().purge_dead_letters(purge_of(id)).await;
        assert_eq!(refused(unknown), missing);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_requeued_one_by_one_or_all_at_once() {
    let node = Node::start().await;
    register(&node, FAILING).await;
    for input in ["1", "2", "3"] {
        invoke(&node, input).await;
    }
    register(&node, WORKING).await;
    let oldest = list(&node).await.items.pop().unwrap().id;
    let requeue = async |request| {
        let requeued = node.actions().requeue_dead_letters(request).await.unwrap();
        requeued.into_inner()
    };
    let one = requeue(requeue_of(&oldest)).await;
    assert_eq!((one.requeued_count, one.action_run_ids.len()), (1, 1));
    // The same request again has the same response, although the dead letter is gone.
    assert_eq!(requeue(requeue_of(&oldest)).await, one);
    let again = ended(&node, one.action_run_ids[0].clone()).await;
    assert_eq!(again.status(), v1::ActionRunStatus::Completed);
    assert_eq!((again.input.as_ref(), again.run_id), (&b"1"[..], None));

    let rest = requeue(requeue_of("")).await;
    assert_eq!((rest.requeued_count, rest.action_run_ids.len()), (2, 2));
    assert_eq!(requeue(requeue_of("")).await.requeued_count, 0);
    assert_eq!(list(&node).await.dead_letter_count, 0);
    for id in rest.action_run_ids {
        let status = ended(&node, id).await.status();
        assert_eq!(status, v1::ActionRunStatus::Completed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_purged_one_by_one_or_all_at_once() {
    let node = Node::start().await;
    register(&node, FAILING).await;
    for input in ["1", "2", "3"] {
        invoke(&node, input).await;
    }
    let newest = list(&node).await.items.swap_remove(0).id;
    let purge = async |request| {
        let purged = node.actions().purge_dead_letters(request).await.unwrap();
        purged.into_inner().purged_count
    };
    assert_eq!(purge(purge_of(&newest)).await, 1);
    assert!(!ids(&list(&node).await).contains(&newest.as_str()));
    assert_eq!(purge(purge_of("")).await, 2);
    assert_eq!(purge(purge_of("")).await, 0);
    assert_eq!(list(&node).await.items, []);
}
