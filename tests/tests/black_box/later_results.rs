//! Asynchronous step results, and delays that an action gives, with the command line.

use flotilla_tests::{CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};

const WORKFLOW: &str = r#"
kind: Workflow
name: transfer
version: "1"
steps:
  - name: order
    run: "@actions/order"
    tracking: {mode: async}
    transitions: {rejected: flo.Failed}
  - name: book
    run: "@actions/book"
    inputMapping: {transfer: $.steps.order.output}
"#;

/// The run's only active step, once it waits for `what`.
fn waiting(flo: &Flo, run_id: &str, what: &str) -> Value {
    wait_until("the wait", TIMEOUT, || {
        let run = flo.json(&["workflow", "status", run_id]);
        let step = &run["current_steps"][0];
        match step["waiting_for"] == what {
            true => Ok(step.clone()),
            false => Err(run.to_string()),
        }
    })
}

#[test]
fn an_accepted_step_is_completed_by_name_and_the_next_one_after_a_delay() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("transfer.yaml", WORKFLOW);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let actions = [("order", "exit 76"), ("book", "cat")];
    let mut worker = CommandWorker::start_with(&flo, node.scratch(), &[], &actions);
    let _ = flo.text(&["workflow", "start", "transfer", "--run-id", "t-1"]);
    let step = waiting(&flo, "t-1", "report");
    assert_eq!(step["deadline_at_ms"], Value::Null, "{step}");

    let complete = ["workflow", "complete-step", "t-1"];
    let refused = |more: &[&str]| flo.refused(&[&complete[..], more].concat());
    refused(&["book"]).expect(3, "step_not_waiting");
    refused(&["order", "--visit", "2"]).expect(3, "step_not_waiting");
    refused(&["order", "--scope", "no/where"]).expect(1, "scope_not_found");
    refused(&["order", "--outcome", "target_not_found"]).expect(2, "outcome_reserved");
    refused(&["order", "--delay", "367d"]).expect(2, "invalid_argument");
    refused(&["order", "--message", "no"]).expect(2, "usage");
    refused(&["order", "--failure", "lost", "--outcome", "x"]).expect(2, "usage");

    let output = r#"{"settled": 100}"#;
    let more = ["order", "--output", output, "--delay", "1h"];
    let completed = flo.json(&[&complete[..], &more].concat());
    let expected = json!({"run_id": "t-1", "step": "order", "visit": 1, "outcome": "success"});
    assert_eq!(completed, expected);
    refused(&["order"]).expect(3, "step_not_waiting");
    let step = waiting(&flo, "t-1", "delay");
    assert_eq!(step["step"], "book", "{step}");
    assert!(step["deadline_at_ms"].is_u64(), "{step}");
    let _ = flo.text(&["workflow", "cancel", "t-1"]);
    refused(&["order"]).expect(3, "run_ended");

    let _ = flo.text(&["workflow", "start", "transfer", "--run-id", "t-2"]);
    let _ = waiting(&flo, "t-2", "report");
    let more = ["order", "--output", output, "--delay", "10ms"];
    let _ = flo.json(&[&["workflow", "complete-step", "t-2"], &more[..]].concat());
    let output = wait_until("the end", TIMEOUT, || {
        let run = flo.json(&["workflow", "status", "t-2"]);
        match run["status"] == "completed" {
            true => Ok(run["output"].clone()),
            false => Err(run.to_string()),
        }
    });
    assert_eq!(output, json!({"transfer": {"settled": 100}}));

    let _ = flo.text(&["workflow", "start", "transfer", "--run-id", "t-3"]);
    let _ = waiting(&flo, "t-3", "report");
    let more = ["order", "--failure", "lost", "--message", "no transfer"];
    let text = flo.text(&[&["workflow", "complete-step", "t-3"], &more[..]].concat());
    assert_eq!(text, "reported failure for step order of t-3");
    let failed = flo.json(&["workflow", "status", "t-3"]);
    assert_eq!(failed["status"], "failed", "{failed}");
    let output = &failed["steps"]["order"]["output"];
    assert_eq!(output["error"]["code"], "lost", "{failed}");
    assert!(worker.drain().success());
}
