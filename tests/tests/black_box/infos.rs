//! Info entries: what callers and tasks say about a run (W92).

use crate::calls;
use crate::wire;
use flotilla_client::{ActionContext, ActionResult, HandlerError, Worker};
use flotilla_tests::{DevNode, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::future::pending;

const WORKFLOW: &str = r#"
kind: Workflow
name: shipping
version: "1"
steps:
  - {name: pack, run: "@actions/pack"}
  - {name: ship, waitForSignal: {type: shipped, timeoutMs: 60000, onTimeout: flo.Failed}}
"#;

async fn pack(context: ActionContext) -> Result<ActionResult, HandlerError> {
    for done in 1..=2 {
        let progress = json!({"done": done, "of": 2});
        let added = context.add_info(&progress).await;
        added.map_err(|error| HandlerError::retry(error.to_string()))?;
    }
    Ok(ActionResult::success(json!({})))
}

#[test]
fn callers_and_tasks_add_info_entries_to_an_open_run() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("shipping.yaml", WORKFLOW);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let _ = flo.text(&["action", "register", "pack"]);
    let _ = flo.text(&["workflow", "start", "shipping", "--run-id", "s-1"]);
    let info = ["workflow", "info", "s-1"];
    let add = |content: &str| flo.text(&[&info[..], &[content]].concat());
    assert_eq!(add("{\"ticket\": \"OPS-7\"}"), "info 1 added to s-1");

    let runtime = wire::runtime();
    let client = {
        let _inside = runtime.enter();
        calls::client(&[node.endpoint()], 0)
    };
    let worker = Worker::builder(client).action("pack", pack).build();
    let worker = worker.expect("a worker");
    drop(runtime.spawn(worker.run(pending())));
    let entries = wait_until("the entries of the task", TIMEOUT, || {
        let entries = flo.json_lines(&info);
        match entries.len() {
            3 => Ok(entries),
            _ => Err(format!("{entries:?}")),
        }
    });
    let contents: Vec<&Value> = entries.iter().map(|entry| &entry["content"]).collect();
    let progress = |done: u32| json!({"done": done, "of": 2});
    assert_eq!(
        contents,
        [&json!({"ticket": "OPS-7"}), &progress(1), &progress(2)]
    );
    assert_eq!(entries[0]["task"], Value::Null);
    assert_eq!(entries[1]["task"]["step"], "pack");
    assert_eq!(entries[2]["number"], 3);
    let shown = flo.text(&info);
    assert!(shown.contains("pack"), "{shown}");
    let history = flo.json_lines(&["workflow", "history", "s-1"]);
    let events = history.iter().filter(|event| event["type"] == "info");
    assert_eq!(events.count(), 3, "{history:?}");

    let refused = |content: &str| flo.refused(&[&info[..], &[content]].concat());
    refused("[1]").expect(2, "invalid_argument");
    let _ = flo.text(&["workflow", "cancel", "s-1"]);
    refused("{}").expect(3, "run_ended");
    assert_eq!(flo.json_lines(&info).len(), 3);
    flo.refused(&["workflow", "info", "missing"])
        .expect(1, "run_not_found");
}
