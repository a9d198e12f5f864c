//! Payloads are shown only to callers with the permission `run.payloads` (X17).

use crate::access::{create_token, with_token};
use crate::node::Node;
use crate::web::{call, call_with, exchange};
use flotilla_api::v1;
use serde_json::json;

/// What stands in every payload, and nowhere else.
const MARK: &str = "swordfish";

const PAYMENT: &str = r#"
kind: Workflow
name: payment
version: "1.0.0"
start:
  run: "@actions/charge"
  input: "$.input"
  transitions: {success: flo.Completed, failure: decide}
steps:
  decide:
    waitForSignal: {type: decision, timeoutMs: 600000}
    transitions: {success: flo.Completed}
"#;

/// Runs the workflow to its end with the mark in all payloads, and returns the id of the action run that failed.
async fn run_with_marked_payloads(http: &str) -> String {
    let yaml = &["content-type: application/yaml"];
    let created = call(http, "POST /v1/namespaces/shop/workflows", yaml, PAYMENT).await;
    assert_eq!(created.status, 201, "{created:?}");
    let send = async |line: &str, body: serde_json::Value| {
        let reply = call_with(http, line, &body.to_string()).await;
        assert!((200..300).contains(&reply.status), "{line}: {reply:?}");
        reply.body
    };
    let marked = json!({"word": MARK});
    send("PUT /v1/namespaces/shop/actions/charge", json!({})).await;
    let worker = "/v1/namespaces/shop/workers/w1";
    send(&format!("PUT {worker}"), json!({"incarnation": 1})).await;
    let start = json!({"run_id": "r1", "input": marked, "metadata": marked});
    send("POST /v1/namespaces/shop/workflows/payment/runs", start).await;
    let poll = json!({"incarnation": 1, "actions": ["charge"], "slots": 1});
    let polled = send(&format!("POST {worker}/await"), poll).await;
    let task = &polled["tasks"][0];
    let info = json!({"task_token": task["task_token"], "content": marked});
    send("POST /v1/namespaces/shop/tasks/info", info).await;
    let failure = json!({"failures": [{
        "task_token": task["task_token"], "kind": "no_retry", "code": "refused", "message": MARK,
    }]});
    let failed = send("POST /v1/namespaces/shop/tasks/fail", failure).await;
    assert_eq!(failed["results"][0]["error"], json!(null), "{failed}");
    let signal = json!({"type": "decision", "payload": marked});
    send("POST /v1/namespaces/shop/runs/r1/signals", signal).await;
    task["action_run_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_are_shown_only_to_callers_that_may_read_them() {
    let node = Node::start().await;
    let http = node.http_address.as_str();
    let action_run = run_with_marked_payloads(http).await;
    let (viewer, _) = create_token(&node, "viewer@shop", None).await;
    let (reader, _) = create_token(&node, "reader@shop", None).await;
    for path in [
        "runs/r1".to_owned(),
        "runs/r1/history".to_owned(),
        "runs/r1/report".to_owned(),
        "runs/r1/info".to_owned(),
        "runs/r1/events".to_owned(),
        format!("action-runs/{action_run}"),
        "actions/charge/runs".to_owned(),
        "actions/charge/dead-letters".to_owned(),
        format!("actions/charge/dead-letters/{action_run}"),
    ] {
        let get = async |token: &str| {
            let request = format!(
                "GET /v1/namespaces/shop/{path} HTTP/1.0\r\nhost: {http}\r\nauthorization: Bearer {token}\r\n\r\n"
            );
            let (status, body) = exchange(http, &request).await;
            assert!(status.contains("200"), "{path}: {status} {body}");
            body
        };
        let (hidden, shown) = (get(&viewer).await, get(&reader).await);
        assert!(shown.contains(MARK), "{path}: {shown}");
        assert!(!shown.contains(r#""redacted":true"#), "{path}: {shown}");
        assert!(!hidden.contains(MARK), "{path}: {hidden}");
        assert!(hidden.contains(r#""redacted":true"#), "{path}: {hidden}");
    }
    let request = v1::GetRunRequest {
        namespace: "shop".to_owned(),
        run_id: "r1".to_owned(),
        ..Default::default()
    };
    let run = node
        .workflows()
        .get_run(with_token(request, &viewer))
        .await
        .unwrap()
        .into_inner();
    assert!(run.redacted && run.input.is_empty() && run.output.is_none());
    assert_eq!(run.workflow, "payment");
}
