//! Targets and locks, with the command line (W85).

use flotilla_tests::{DevNode, Flo, wait_until};
use serde_json::{Value, json};
use std::time::Duration;

fn create(node: &DevNode, name: &str, keys: &str) {
    let text = format!(
        r#"
kind: Workflow
name: {name}
version: "1"
{keys}
steps:
  - {{name: ask, waitForSignal: {{type: go}}}}
"#
    );
    let file = node.scratch().write(&format!("{name}.yaml"), &text);
    let _ = node.flo().text(&["workflow", "create", "-f", &file]);
}

/// Waits until a run is as wanted; returns it.
fn until(flo: &Flo, run: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    wait_until(run, Duration::from_secs(30), || {
        let status = flo.json(&["workflow", "status", run]);
        match is_wanted(&status) {
            true => Ok(status),
            false => Err(status.to_string()),
        }
    })
}

#[test]
fn a_start_with_the_target_and_input_of_an_open_run_is_rejected() {
    let node = DevNode::start();
    let flo = node.flo();
    create(&node, "resize", r#"target: "$.input.vm""#);
    let start = |input, rest: &[&'static str]| {
        let command = ["workflow", "start", "resize", input];
        [&command[..], rest].concat()
    };
    let key = ["--run-id", "first", "--idempotency-key", "k"];
    let _ = flo.text(&start(r#"{"vm":"a","n":1}"#, &key));
    let refusal = flo.refused(&start(r#"{"n":1,"vm":"a"}"#, &[]));
    refusal.expect(3, "target_active").says("run first");
    let again = flo.text(&start(r#"{"vm":"a","n":1}"#, &["--idempotency-key", "k"]));
    assert_eq!(again.trim(), "first");
    let _ = flo.text(&start(r#"{"vm":"a","n":2}"#, &[]));
    let _ = flo.text(&start(r#"{"vm":"a","n":1}"#, &["--target", "b"]));
    let status = flo.json(&["workflow", "status", "first"]);
    assert_eq!(status["target"], "a", "{status}");
    assert_eq!(status["locks"], json!([]), "{status}");
    let _ = flo.text(&["workflow", "cancel", "first"]);
    let _ = flo.text(&start(r#"{"vm":"a","n":1}"#, &[]));
    let long = "x".repeat(1_025);
    let refusal = flo.refused(&["workflow", "start", "resize", "--target", &long]);
    refusal.expect(2, "invalid_argument");
}

#[test]
fn a_start_whose_target_is_locked_is_rejected() {
    let node = DevNode::start();
    let flo = node.flo();
    create(&node, "work", r#"target: "$.input.vm""#);
    create(&node, "backup", "locks: '^a/(modify|destroy)$'");
    create(&node, "computed", r#"locks: "$.input.lock""#);
    let _ = flo.text(&["workflow", "start", "backup", "--run-id", "holder"]);
    let status = flo.json(&["workflow", "status", "holder"]);
    assert_eq!(status["locks"][0], "^a/(modify|destroy)$", "{status}");
    let locked = ["workflow", "start", "work", r#"{"vm":"a/destroy"}"#];
    let refusal = flo.refused(&locked);
    let sentence = "run holder holds the lock";
    refusal.expect(3, "target_locked").says(sentence);
    let _ = flo.text(&["workflow", "start", "work", r#"{"vm":"a/read"}"#]);
    let _ = flo.text(&["workflow", "cancel", "holder"]);
    let _ = flo.text(&locked);

    let start = ["workflow", "start", "backup", "--locks"];
    let _ = flo.text(&[&start[..], &["^b$", "--locks", "^c$"]].concat());
    let refusal = flo.refused(&["workflow", "start", "work", r#"{"vm":"c"}"#]);
    refusal.expect(3, "target_locked");
    flo.refused(&[&start[..], &["^b$", "--locks", "(unclosed"]].concat())
        .expect(2, "invalid_argument")
        .says("locks[1]: invalid regular expression: unclosed group");

    // A computed lock is compiled before the run begins.
    let input = r#"{"lock":"^d"}"#;
    let _ = flo.text(&["workflow", "start", "computed", input, "--run-id", "waits"]);
    until(&flo, "waits", |run| run["waiting_for"] == "signal");
    let refusal = flo.refused(&["workflow", "start", "work", r#"{"vm":"disk"}"#]);
    refusal.expect(3, "target_locked");
    let input = r#"{"lock":"(unclosed"}"#;
    let _ = flo.text(&["workflow", "start", "computed", input, "--run-id", "bad"]);
    let status = until(&flo, "bad", |run| run["status"] == "failed");
    let detail = status["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("unclosed group"), "{status}");
}
