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

const STAGES: &str = r#"
kind: Workflow
name: stages
version: "1"
state: {n: 1}
output: {n: $.state.n, ok: $.input.ok}
steps:
  - {name: first, set: {n: {cel: state.n + 1}}}
  - name: last
    switch: [{when: "input.ok", goto: flo.Completed}]
    default: flo.Failed
"#;

#[test]
fn a_run_is_retried_from_a_step_with_the_results_and_the_state_before_it() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = node.scratch().write("stages.yaml", STAGES);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let start = ["workflow", "start", "stages", r#"{"ok": false}"#];
    let _ = flo.text(&[&start[..], &["--run-id", "s-1"]].concat());

    let retry = ["workflow", "retry", "s-1", "--from", "last"];
    let more = ["--input", r#"{"ok": true}"#, "--run-id", "s-2"];
    let _ = flo.text(&[&retry[..], &more].concat());
    let again = flo.json(&["workflow", "status", "s-2"]);
    assert_eq!(again["status"], "completed");
    assert_eq!(again["output"], json!({"n": 2, "ok": true}));
    assert_eq!(again["retried_from_step"], "last");
    assert_eq!(again["steps"]["first"]["outcome"], "success");
    let history = flo.text(&["workflow", "history", "s-2"]);
    assert_eq!(history.matches("step_started").count(), 1, "{history}");
    assert_eq!(history.matches("step_taken_over").count(), 1, "{history}");

    let unknown = ["workflow", "retry", "s-1", "--from", "middle"];
    assert_eq!(flo.refused(&unknown).code, "step_not_visited");
    let only_forced = ["workflow", "retry", "s-1", "--force"];
    flo.refused(&only_forced).expect(2, "usage");
    let other = STAGES.replace("name: first", "name: begin");
    let file = node.scratch().write("other.yaml", &other);
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let latest = [&retry[..], &["--latest"]].concat();
    assert_eq!(flo.refused(&latest).code, "workflow_drift");
    let forced = [&latest[..], &["--force", "--run-id", "s-3"]].concat();
    let _ = flo.text(&forced);
    let forced = flo.json(&["workflow", "status", "s-3"]);
    assert_eq!(forced["status"], "failed");
    assert_eq!(forced["state"], json!({"n": 2}));
    assert_eq!(forced["steps"]["begin"], Value::Null);
}

#[test]
fn a_revision_is_selected_by_its_number_and_a_resume_replaces_the_metadata() {
    let node = DevNode::start();
    let flo = node.flo();
    let later = STAGES.replace("kind:", "description: the same steps\nkind:");
    for (name, source) in [("stages.yaml", STAGES), ("later.yaml", &later)] {
        let file = node.scratch().write(name, source);
        let _ = flo.text(&["workflow", "create", "-f", &file]);
    }
    let first = ["--version", "1", "--revision", "1"];
    let second = ["--version", "1", "--revision", "2"];
    let third = ["--version", "1", "--revision", "3"];
    let show = ["workflow", "show", "stages"];
    let start = ["workflow", "start", "stages", r#"{"ok": false}"#];
    let resume = ["workflow", "resume", "s-1", "--from", "last"];
    let retry = ["workflow", "retry", "s-1"];
    let revision = |run_id: &str| flo.json(&["workflow", "status", run_id])["revision"].clone();

    assert_eq!(flo.text(&[&show[..], &first].concat()), STAGES.trim_end());
    let run_id = flo.text(&[&start[..], &first, &["--run-id", "s-1"]].concat());
    assert_eq!(revision(&run_id), 1);
    let metadata = ["--metadata", r#"{"ticket": "OPS-9"}"#];
    let _ = flo.text(&[&resume[..], &second, &metadata].concat());
    assert_eq!(revision("s-1"), 2);
    let status = flo.json(&["workflow", "status", "s-1"]);
    assert_eq!(status["metadata"], json!({"ticket": "OPS-9"}));
    let _ = flo.text(&[&resume[..], &first].concat());
    assert_eq!(revision("s-1"), 1);
    let run_id = flo.text(&[&retry[..], &second].concat());
    assert_eq!(revision(&run_id), 2);
    for command in [&show[..], &start, &resume, &retry] {
        let unknown = [command, &third].concat();
        assert_eq!(flo.refused(&unknown).code, "revision_not_found");
        let no_version = [command, &third[2..]].concat();
        flo.refused(&no_version).expect(2, "usage");
    }
}
