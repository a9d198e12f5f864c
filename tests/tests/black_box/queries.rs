//! Runs are found by conditions, and ended runs are deleted when their retention ends.

use crate::files::fixture;
use flotilla_tests::{DevNode, Flo, TIMEOUT, wait_until};

fn found(flo: &Flo, line: &[&str]) -> Vec<String> {
    let listed = flo.json(&[&["workflow", "runs"], line].concat());
    let items = listed["items"].as_array().expect("a list has items");
    let id = |item: &serde_json::Value| item["run_id"].as_str().expect("an id").to_owned();
    items.iter().map(id).collect()
}

#[test]
fn runs_are_found_by_conditions_and_a_mistake_is_shown_with_a_caret() {
    let node = DevNode::start();
    let flo = node.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("passing.yaml")]);
    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let small = flo.text(&["workflow", "start", "passing", r#"{"total": 5}"#]);
    let large = flo.text(&["workflow", "start", "passing", r#"{"total": 50.5}"#]);
    let other = flo.text(&["workflow", "start", "parked"]);
    let _ = flo.text(&["workflow", "cancel", &other]);
    assert_eq!(found(&flo, &["--where", "total > 5"]), [large.as_str()]);
    let both = "total >= 5 and status = 'waiting'";
    assert_eq!(found(&flo, &["--where", both]), [large.as_str(), &small]);
    assert_eq!(
        found(&flo, &["--where", both, "--status", "failed"]),
        [""; 0]
    );
    let other_workflow = [
        "--workflow",
        "parked",
        "--where",
        "started_at > 2001-01-01T00:00:00Z",
    ];
    assert_eq!(found(&flo, &other_workflow), [other.as_str()]);
    let page = flo.json(&["workflow", "runs", "--where", both, "--limit", "1"]);
    assert_eq!(page["items"][0]["run_id"], large.as_str(), "{page}");
    let token = page["next_page_token"].as_str().expect("there is more");
    assert_eq!(
        found(&flo, &["--where", both, "--page-token", token]),
        [small]
    );

    let mistaken = flo.run(&["workflow", "runs", "--where", "total => 5"]);
    assert_eq!(mistaken.code, 2, "{}", mistaken.show());
    let excerpt = "\n  total => 5\n        ^^\n";
    assert!(mistaken.stderr.contains(excerpt), "{}", mistaken.show());
    flo.refused(&["workflow", "runs", "--where", "total => 5"])
        .expect(2, "where_invalid");
}

#[test]
fn an_ended_run_is_forgotten_when_its_retention_is_over() {
    let node = DevNode::start();
    let flo = node.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("passing.yaml")]);
    let start = ["workflow", "start", "passing", "--idempotency-key", "k"];
    let ended = flo.text(&start);
    let open = flo.text(&["workflow", "start", "passing"]);
    let _ = flo.text(&["workflow", "signal", &ended, "--type", "go"]);
    let status = ["-o", "json", "workflow", "status", &ended];
    let refusal = wait_until("the run to be deleted", TIMEOUT, || {
        let answer = flo.run(&status);
        match answer.code {
            0 => Err(answer.show()),
            _ => Ok(answer.refusal()),
        }
    });
    refusal.expect(1, "run_not_found");
    assert_eq!(found(&flo, &[]), [open.as_str()]);
    assert_ne!(flo.text(&start), ended);
}
