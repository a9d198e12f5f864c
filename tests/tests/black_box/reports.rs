//! Reports of runs (W87), and what the status says about scopes and errors (W94).

use crate::calls;
use crate::wire;
use flotilla_client::{ActionContext, ActionResult, HandlerError, Worker};
use flotilla_tests::{DevNode, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::future::pending;
use tokio::runtime::Runtime;

const PARENT: &str = r#"
kind: Workflow
name: order
version: "1"
steps:
  - {name: pay, run: "@actions/charge", retry: {max_attempts: 3, delays: [10ms]}}
  - name: both
    parallel:
      branches:
        ship: {run: "@workflow/shipping"}
        note: {waitForSignal: {type: noted, timeoutMs: 60000, onTimeout: flo.Failed}}
"#;

const CHILD: &str = r#"
kind: Workflow
name: shipping
version: "1"
steps:
  - {name: pack, wait: {duration: 1ms}}
"#;

/// Fails for good if the input says so.
async fn charge(context: ActionContext) -> Result<ActionResult, HandlerError> {
    match context.json::<Value>()?["declined"].as_bool() {
        Some(true) => Err(HandlerError::non_retryable("card declined").with_code("declined")),
        _ => Ok(ActionResult::success(json!({"paid": true}))),
    }
}

/// Creates both workflows, and executes the action until the runtime is dropped.
fn prepare(node: &DevNode, flo: &Flo) -> Runtime {
    for (name, text) in [("child.yaml", CHILD), ("parent.yaml", PARENT)] {
        let file = node.scratch().write(name, text);
        let _ = flo.text(&["workflow", "create", "-f", &file]);
    }
    let _ = flo.text(&["action", "register", "charge"]);
    let runtime = wire::runtime();
    let client = {
        let _inside = runtime.enter();
        calls::client(&[node.endpoint()], 0)
    };
    let worker = Worker::builder(client).action("charge", charge).build();
    let worker = worker.expect("a worker");
    drop(runtime.spawn(worker.run(pending())));
    runtime
}

/// The scope, the name and the outcome of each visit.
fn places(report: &Value) -> Vec<[String; 3]> {
    let text = |step: &Value, name: &str| step[name].as_str().unwrap_or("active").to_owned();
    let steps = report["steps"].as_array().expect("a list").iter();
    steps
        .map(|step| ["scope", "step", "outcome"].map(|name| text(step, name)))
        .collect()
}

#[test]
fn a_report_shows_visits_attempts_and_child_runs() {
    let node = DevNode::start();
    let flo = node.flo();
    let _runtime = prepare(&node, &flo);

    let _ = flo.text(&["workflow", "start", "order", "--run-id", "o-1"]);
    let status = wait_until("the end of the child", TIMEOUT, || {
        let status = flo.json(&["workflow", "status", "o-1"]);
        match status["scopes"]["done"].as_u64() {
            Some(1) => Ok(status),
            _ => Err(format!("{status}")),
        }
    });
    let scopes = json!({
        "path": "", "kind": "root", "status": "waiting", "done": 1, "total": 2, "failed": 0,
        "scopes": [
            {"path": "both/ship", "kind": "branch", "status": "ended", "outcome": "success"},
            {"path": "both/note", "kind": "branch", "status": "waiting"},
        ],
    });
    assert_eq!(status["scopes"], scopes);
    assert_eq!(status["error"], Value::Null);

    let report = flo.json(&["workflow", "report", "o-1", "--children", "1"]);
    assert_eq!(report["run"]["signature"], status["signature"]);
    assert_eq!(report["incomplete"], false);
    let expected = [
        ["", "pay", "success"],
        ["", "both", "active"],
        ["both/ship", "ship", "success"],
        ["both/note", "note", "active"],
    ]
    .map(|visit| visit.map(str::to_owned));
    assert_eq!(places(&report), expected);
    let pay = &report["steps"][0];
    assert_eq!(pay["output"], json!({"paid": true}));
    assert_eq!(pay["attempts"][0]["outcome"], "success");
    let child = &report["steps"][2]["attempts"][0]["child_run_id"];
    assert_eq!(report["children"][0]["run"]["run_id"], *child);
    assert_eq!(places(&report["children"][0])[0][1], "pack");
}

#[test]
fn a_failed_run_has_an_error() {
    let node = DevNode::start();
    let flo = node.flo();
    let _runtime = prepare(&node, &flo);
    let declined = r#"{"declined": true}"#;
    let _ = flo.text(&["workflow", "start", "order", declined, "--run-id", "o-2"]);
    let status = wait_until("the end of the run", TIMEOUT, || {
        let status = flo.json(&["workflow", "status", "o-2"]);
        match status["status"].as_str() {
            Some("failed") => Ok(status),
            _ => Err(format!("{status}")),
        }
    });
    assert_eq!(status["error"]["code"], "declined");
    assert_eq!(status["error"]["step"], "pay");
    assert_eq!(status["scopes"], Value::Null);
    let table = flo.text(&["workflow", "report", "o-2"]);
    assert!(table.contains("declined: card declined"), "{table}");
    let other = flo.refused(&["workflow", "report", "o-2", "--page-token", "ab"]);
    assert_eq!(other.code, "invalid_argument");
    let missing = flo.refused(&["workflow", "report", "o-9"]);
    assert_eq!(missing.code, "run_not_found");
}
