//! Concurrency limits, with the command line (W84).

use flotilla_tests::DevNode;

/// The command that starts a run with the same key.
fn start<'a>(workflow: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    let command = ["workflow", "start", workflow, r#"{"vm":"web-1"}"#];
    [&command[..], rest].concat()
}

/// A workflow that waits for the signal `go`.
fn workflow(name: &str, concurrency: &str) -> String {
    format!(
        r#"
kind: Workflow
name: {name}
version: "1"
concurrency: {concurrency}
steps:
  - {{name: ask, waitForSignal: {{type: go}}}}
"#
    )
}

#[test]
fn a_start_at_the_limit_is_rejected_or_gets_the_run_that_holds_the_key() {
    let node = DevNode::start();
    let flo = node.flo();
    let strict = workflow("strict", r#"{key: "$.input.vm", onLimit: reject}"#);
    let file = node.scratch().write("strict.yaml", &strict);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let shared = workflow("shared", r#"{key: "$.input.vm", onLimit: existing}"#);
    let file = node.scratch().write("shared.yaml", &shared);
    let _ = flo.text(&["workflow", "create", "-f", &file]);

    let _ = flo.text(&start("strict", &["--run-id", "holder"]));
    let refusal = flo.refused(&start("strict", &[]));
    refusal.expect(3, "run_limit_reached");
    // An unlimited value.
    let _ = flo.text(&["workflow", "start", "strict"]);

    let first = flo.json(&start("shared", &["--run-id", "used"]));
    assert_eq!(first["existing"], false, "{first}");
    assert!(first["reason"].is_null(), "{first}");
    let key = ["--idempotency-key", "k"];
    let second = flo.json(&start("shared", &key));
    assert_eq!(second["run_id"], "used", "{second}");
    assert_eq!(second["reason"], "concurrency", "{second}");
    let third = flo.json(&start("shared", &key));
    assert_eq!(third["run_id"], "used", "{third}");
    assert_eq!(third["reason"], "idempotency_key", "{third}");
}

#[test]
fn a_new_run_replaces_the_one_that_holds_the_key() {
    let node = DevNode::start();
    let flo = node.flo();
    let latest = workflow("latest", "{key: all, onLimit: cancel_oldest}");
    let file = node.scratch().write("latest.yaml", &latest);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    for run in ["one", "two", "three"] {
        let _ = flo.text(&["workflow", "start", "latest", "--run-id", run]);
    }
    for run in ["one", "two"] {
        let status = flo.json(&["workflow", "status", run]);
        assert_eq!(status["status"], "cancelled", "{status}");
    }
    let status = flo.json(&["workflow", "status", "two"]);
    assert_eq!(status["detail"], "replaced by run three", "{status}");
    let status = flo.json(&["workflow", "status", "three"]);
    assert_eq!(status["waiting_for"], "signal", "{status}");
    assert!(status["began_at_ms"].is_u64(), "{status}");
}
