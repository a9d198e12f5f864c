//! Compensations, with the command line.

use flotilla_tests::{CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};

const WORKFLOW: &str = r#"
kind: Workflow
name: trip
version: "1"
steps:
  - name: flight
    run: "@actions/book"
    inputMapping: {what: flight}
    compensate: {run: "@actions/undo", inputMapping: {undone: $.output.what}}
  - name: hotels
    forEach:
      items: [a, b]
      concurrency: 1
      do:
        name: hotel
        run: "@actions/book"
        inputMapping: {what: $.item}
        compensate: {run: "@actions/undo", inputMapping: {undone: {cel: "'hotel ' + item"}}}
  - name: confirm
    waitForSignal: {type: confirmed}
  - name: fall
    run: "@actions/fall"
onError:
  - {name: page, run: "@actions/book", inputMapping: {what: page}}
"#;

/// The run, once it has this status.
fn ended(flo: &Flo, run_id: &str, status: &str) -> Value {
    wait_until(status, TIMEOUT, || {
        let run = flo.json(&["workflow", "status", run_id]);
        match run["status"] == status {
            true => Ok(run),
            false => Err(run.to_string()),
        }
    })
}

/// The inputs of the action runs of the action `undo`, in their order.
fn undone(flo: &Flo) -> Vec<Value> {
    let runs = flo.json(&["action", "runs", "undo"]);
    let rows = runs["items"].as_array().cloned().unwrap_or_default();
    let mut ids: Vec<String> = rows
        .iter()
        .filter_map(|row| row["action_run_id"].as_str().map(str::to_owned))
        .collect();
    ids.sort_by_key(|id| {
        id.trim_start_matches("arun-")
            .parse::<u64>()
            .unwrap_or_default()
    });
    let input = |id: &String| flo.json(&["action", "status", id])["input"]["undone"].clone();
    ids.iter().map(input).collect()
}

fn waiting(flo: &Flo, run_id: &str) {
    wait_until("the signal", TIMEOUT, || {
        let run = flo.json(&["workflow", "status", run_id]);
        match run["waiting_for"] == "signal" {
            true => Ok(()),
            false => Err(run.to_string()),
        }
    });
}

#[test]
fn what_a_run_has_done_is_undone_backwards() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("trip.yaml", WORKFLOW);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let actions = [("book", "cat"), ("undo", "cat"), ("fall", "exit 1")];
    let flags = ["--max-retries", "0"];
    let mut worker = CommandWorker::start_with(&flo, node.scratch(), &flags, &actions);

    let _ = flo.text(&["workflow", "start", "trip", "--run-id", "t-1"]);
    waiting(&flo, "t-1");
    let status = flo.json(&["workflow", "status", "t-1"]);
    assert_eq!(status["compensation"], "none", "{status}");
    let _ = flo.text(&["workflow", "signal", "t-1", "--type", "confirmed", "{}"]);
    let run = ended(&flo, "t-1", "failed");
    assert_eq!(run["compensation"], "done", "{run}");
    assert_eq!(run["steps"]["page"]["outcome"], "success", "{run}");
    let expected = [json!("hotel b"), json!("hotel a"), json!("flight")];
    assert_eq!(undone(&flo), expected);

    let _ = flo.text(&["workflow", "start", "trip", "--run-id", "t-2"]);
    waiting(&flo, "t-2");
    let _ = flo.text(&["workflow", "cancel", "t-2"]);
    let run = ended(&flo, "t-2", "cancelled");
    assert_eq!(run["compensation"], "done", "{run}");
    assert_eq!(undone(&flo).len(), 6);

    let _ = flo.text(&["workflow", "start", "trip", "--run-id", "t-3"]);
    waiting(&flo, "t-3");
    let _ = flo.text(&["workflow", "cancel", "t-3", "--force"]);
    let run = ended(&flo, "t-3", "cancelled");
    assert_eq!(run["detail"], "no compensation was made", "{run}");
    assert_eq!(undone(&flo).len(), 6);
    assert!(worker.drain().success());
}
