//! Failure and cancellation handlers, with the command line.

use flotilla_tests::{CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};

const WORKFLOW: &str = r#"
kind: Workflow
name: provision
version: "1"
steps:
  - {name: confirm, waitForSignal: {type: confirmed}}
  - {name: reserve, run: "@actions/reserve"}
onError:
  - {name: page, run: "@actions/page", inputMapping: {error: $.error}}
onCancel:
  - {name: ask, waitForSignal: {type: released}, set: {why: $.cancel.reason}}
  - {name: release, run: "@actions/page", inputMapping: {why: $.state.why}}
"#;

/// The run, once it is in this phase or has this status.
fn reached(flo: &Flo, run_id: &str, field: &str, value: &str) -> Value {
    wait_until(value, TIMEOUT, || {
        let run = flo.json(&["workflow", "status", run_id]);
        match run[field] == value {
            true => Ok(run),
            false => Err(run.to_string()),
        }
    })
}

#[test]
fn a_handler_runs_before_the_end_which_it_cannot_change() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("provision.yaml", WORKFLOW);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let actions = [
        ("reserve", "test $FLO_RUN_ID = p-1 && cat"),
        ("page", "cat"),
    ];
    let flags = ["--max-retries", "0"];
    let mut worker = CommandWorker::start_with(&flo, node.scratch(), &flags, &actions);

    let _ = flo.text(&["workflow", "start", "provision", "--run-id", "p-1"]);
    let _ = reached(&flo, "p-1", "waiting_for", "signal");
    let cancel = ["workflow", "cancel", "p-1", "--reason", "ordered twice"];
    assert_eq!(
        flo.text(&cancel),
        "p-1 is being cancelled, in phase on_cancel"
    );
    let run = reached(&flo, "p-1", "phase", "on_cancel");
    assert_eq!(run["status"], "waiting", "{run}");
    assert_eq!(run["terminal"], Value::Null, "{run}");
    flo.refused(&["workflow", "cancel", "p-1"])
        .expect(3, "run_ending");
    let _ = flo.text(&["workflow", "signal", "p-1", "--type", "released", "{}"]);
    let run = reached(&flo, "p-1", "status", "cancelled");
    assert_eq!(run["phase"], Value::Null, "{run}");
    assert_eq!(run["detail"], "ordered twice", "{run}");
    let released = &run["steps"]["release"]["output"];
    assert_eq!(released, &json!({"why": "ordered twice"}), "{run}");

    let _ = flo.text(&["workflow", "start", "provision", "--run-id", "p-2"]);
    let _ = flo.text(&["workflow", "signal", "p-2", "--type", "confirmed", "{}"]);
    let run = reached(&flo, "p-2", "status", "failed");
    let error = &run["steps"]["page"]["output"]["error"];
    assert_eq!(error["step"], "reserve", "{run}");
    assert_eq!(error["terminal"], "flo.Failed", "{run}");
    assert!(worker.drain().success());
}

#[test]
fn a_forced_cancel_skips_the_handler() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("provision.yaml", WORKFLOW);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let _ = flo.text(&["workflow", "start", "provision", "--run-id", "p-1"]);
    let text = flo.text(&["workflow", "cancel", "p-1", "--force"]);
    assert_eq!(text, "p-1 has ended");
    let run = flo.json(&["workflow", "status", "p-1"]);
    assert_eq!(run["status"], "cancelled", "{run}");
    assert_eq!(run["detail"], "onCancel was not executed", "{run}");

    let _ = flo.text(&["workflow", "start", "provision", "--run-id", "p-2"]);
    let _ = flo.text(&["workflow", "cancel", "p-2"]);
    let _ = reached(&flo, "p-2", "phase", "on_cancel");
    let _ = flo.text(&["workflow", "cancel", "p-2", "--force"]);
    let run = flo.json(&["workflow", "status", "p-2"]);
    assert_eq!(run["detail"], "onCancel was stopped", "{run}");
}
