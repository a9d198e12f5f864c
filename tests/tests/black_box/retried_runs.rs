//! Retries of runs that have ended (W90).

use flotilla_tests::DevNode;
use serde_json::{Value, json};

const FIRST: &str = r#"
kind: Workflow
name: resize
version: "1"
input: {type: object, properties: {size: {type: integer}}}
target: {cel: "'disk-' + string(input.disk)"}
steps:
  - name: check
    switch: [{when: "input.size > 9", goto: flo.Failed}]
    default: flo.Completed
"#;

#[test]
fn a_run_is_retried_with_its_own_revision_and_a_patched_input() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("first.yaml", FIRST);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let second = FIRST.replace("\"1\"", "\"2\"").replace("> 9", "> 99");
    let file = node.scratch().write("second.yaml", &second);
    let input = r#"{"disk": 7, "size": 20, "note": "x"}"#;
    let metadata = r#"{"ticket": "OPS-7"}"#;
    let start = ["workflow", "start", "resize", input, "--run-id", "r-1"];
    let _ = flo.text(&[&start[..], &["--metadata", metadata]].concat());
    let _ = flo.text(&["workflow", "create", "-f", &file]);

    let retry = |more: &[&str]| -> Value {
        let run_id = flo.text(&[&["workflow", "retry", "r-1"], more].concat());
        flo.json(&["workflow", "status", &run_id])
    };
    let same = retry(&[]);
    assert_eq!(same["version"], "1");
    assert_eq!(same["status"], "failed");
    assert_eq!(same["retried_from"], "r-1");
    assert_eq!(same["target"], "disk-7");
    assert_eq!(same["metadata"], json!({"ticket": "OPS-7"}));
    assert_eq!(same["input"], json!({"disk": 7, "size": 20, "note": "x"}));

    let latest = retry(&["--latest"]);
    assert_eq!(latest["version"], "2");
    assert_eq!(latest["status"], "completed");

    let patched = retry(&["--input", r#"{"disk": 8, "size": 3, "note": null}"#]);
    assert_eq!(patched["version"], "1");
    assert_eq!(patched["status"], "completed");
    assert_eq!(patched["target"], "disk-8");
    assert_eq!(patched["input"], json!({"disk": 8, "size": 3}));

    let given = ["--run-id", "r-9", "--target", "disk-array"];
    let _ = flo.text(&[&start[..4], &given].concat());
    for more in [&[][..], &["--input", r#"{"size": 3}"#]] {
        let run_id = flo.text(&[&["workflow", "retry", "r-9"], more].concat());
        let status = flo.json(&["workflow", "status", &run_id]);
        assert_eq!(status["target"], "disk-array", "{more:?}");
    }

    let invalid = ["workflow", "retry", "r-1", "--input", r#"{"size": "big"}"#];
    assert_eq!(flo.refused(&invalid).code, "input_invalid");
    let missing = flo.refused(&["workflow", "retry", "r-2"]);
    assert_eq!(missing.code, "run_not_found");
    let repeated = ["workflow", "retry", "r-1", "--idempotency-key", "once"];
    assert_eq!(flo.text(&repeated), flo.text(&repeated));
}
