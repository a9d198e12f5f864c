//! Decisions about approvals, with the command line.

use flotilla_tests::DevNode;
use serde_json::{Value, json};

const WORKFLOW: &str = r#"
kind: Workflow
name: draft
version: "1"
state: {feedback: none}
steps:
  - name: write
    set: {text: $.state.feedback}
  - name: review
    approval: {approvers: ["role:editors"], quorum: 2, timeout: P3D}
    set: {feedback: $.result.comment}
    transitions: {rejected: write}
output: {feedback: $.state.text, review: $.steps.review.output}
"#;

#[test]
fn a_draft_is_rejected_and_then_approved_by_two() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("draft.yaml", WORKFLOW);
    let created = flo.json(&["workflow", "create", "-f", &file]);
    assert_eq!(created["findings"][0]["code"], "E512", "{created}");
    let _ = flo.text(&["workflow", "start", "draft", "--run-id", "d-1"]);
    let status = flo.json(&["workflow", "status", "d-1"]);
    let step = &status["current_steps"][0];
    assert_eq!(step["kind"], "approval", "{status}");
    assert_eq!(step["waiting_for"], "approval", "{status}");
    assert!(step["deadline_at_ms"].is_u64(), "{status}");

    let rejected = flo.json(&["workflow", "reject", "d-1", "--comment", "too short"]);
    let expected = json!({
        "run_id": "d-1", "step": "review", "visit": 1, "approved": false, "outcome": "rejected",
    });
    assert_eq!(rejected, expected);
    flo.refused(&["workflow", "approve", "d-1", "--visit", "1"])
        .expect(3, "approval_not_open");
    flo.refused(&["workflow", "approve", "d-1", "--scope", "no/where"])
        .expect(1, "scope_not_found");
    let long = "x".repeat(4_097);
    flo.refused(&["workflow", "approve", "d-1", "--comment", &long])
        .expect(2, "invalid_argument");
    let first = flo.text(&[
        "-o", "yaml", "workflow", "approve", "d-1", "--step", "review",
    ]);
    assert!(first.contains("outcome: null"), "{first}");
    let status = flo.json(&["workflow", "status", "d-1"]);
    assert_eq!(
        status["detail"], "waits for a decision at step \"review\": 1 of 2 approvals",
        "{status}"
    );
    let second = flo.text(&["workflow", "approve", "d-1", "--comment", "fine"]);
    assert_eq!(second, "approved step review of d-1");
    flo.refused(&["workflow", "approve", "d-1"])
        .expect(3, "run_ended");

    let ended = flo.json(&["workflow", "status", "d-1"]);
    assert_eq!(ended["output"]["feedback"], "too short", "{ended}");
    let review = &ended["output"]["review"];
    assert_eq!(review["comment"], "fine", "{review}");
    assert_eq!(review["actor"], Value::Null, "{review}");
    assert_eq!(review["decisions"].as_array().map(Vec::len), Some(2));
}
