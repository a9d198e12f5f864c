//! What a new user does in the first minutes, and the JSON shapes on which programs rely (cli.md).

use crate::files::fixture;
use flotilla_tests::{CommandWorker, DevNode, Flo};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Expects an object with at least these fields.
#[track_caller]
fn expect_fields(value: &Value, fields: &[&str]) {
    let object = value.as_object();
    let object = object.unwrap_or_else(|| panic!("expected an object, but it is {value}"));
    let missing: Vec<&&str> = fields
        .iter()
        .filter(|field| !object.contains_key(**field))
        .collect();
    assert!(missing.is_empty(), "expected {missing:?} in {value}");
}

/// Expects an object with exactly these fields.
#[track_caller]
fn expect_only_fields(value: &Value, fields: &[&str]) {
    expect_fields(value, fields);
    let found = value.as_object().map(serde_json::Map::len);
    assert_eq!(
        found,
        Some(fields.len()),
        "expected only {fields:?} in {value}"
    );
}

#[test]
fn a_workflow_is_validated_created_started_signaled_and_seen() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = fixture("parked.yaml");
    let _ = flo.text(&["workflow", "validate", "-f", &file]);
    let created = flo.json(&["workflow", "create", "-f", &file]);
    assert_eq!(
        (&created["name"], &created["revision"]),
        (&json!("parked"), &json!(1))
    );
    assert_eq!(
        flo.json(&["workflow", "create", "-f", &file])["created"],
        false
    );

    let start = [
        "workflow",
        "start",
        "parked",
        r#"{"n":1}"#,
        "--idempotency-key",
        "k",
    ];
    let run_id = flo.text(&start);
    assert!(
        run_id.starts_with("wfrun-") && !run_id.contains('\n'),
        "{run_id}"
    );
    let again = flo.json(&start);
    let fields = [
        "run_id", "workflow", "version", "revision", "existing", "reason",
    ];
    expect_only_fields(&again, &fields);
    assert_eq!(
        (&again["run_id"], &again["existing"]),
        (&json!(run_id), &json!(true))
    );

    let waiting = flo.json(&["workflow", "status", &run_id]);
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    let step = &waiting["current_steps"][0];
    expect_only_fields(
        step,
        &[
            "scope",
            "step",
            "visit",
            "kind",
            "status",
            "attempt",
            "waiting_for",
            "deadline_at_ms",
        ],
    );
    assert_eq!(
        (&step["step"], &step["waiting_for"]),
        (&json!("start"), &json!("signal"))
    );

    let signal = [
        "workflow",
        "signal",
        &run_id,
        "--type",
        "go",
        r#"{"by":"ada"}"#,
    ];
    let _ = flo.text(&signal);
    let _ = flo.text(&["workflow", "history", &run_id, "--follow"]);
    let ended = flo.run(&["workflow", "status", &run_id]).json();
    expect_status(&ended);
    assert_eq!(ended["output"], json!({"by": "ada"}), "{ended}");
    assert_eq!(ended["steps"]["start"]["outcome"], "success", "{ended}");
    expect_lists(&flo, &run_id);
}

fn expect_status(ended: &Value) {
    expect_fields(
        ended,
        &[
            "run_id",
            "workflow",
            "version",
            "revision",
            "status",
            "terminal",
            "detail",
            "current_steps",
            "input",
            "output",
            "steps",
            "search_attributes",
            "parent_run_id",
            "started_at_ms",
            "completed_at_ms",
            "history_event_count",
        ],
    );
    assert_eq!(
        (&ended["status"], &ended["terminal"]),
        (&json!("completed"), &json!("flo.Completed"))
    );
    assert_eq!(ended["current_steps"], json!([]));
    let fields = [
        "outcome",
        "output",
        "attempts",
        "started_at_ms",
        "completed_at_ms",
    ];
    expect_only_fields(&ended["steps"]["start"], &fields);
}

fn expect_lists(flo: &Flo, run_id: &str) {
    let events = flo.json_lines(&["workflow", "history", run_id]);
    for event in &events {
        expect_fields(
            event,
            &["seq", "at_ms", "raft_index", "type", "step", "detail"],
        );
    }
    let limited = flo.json_lines(&["workflow", "history", run_id, "--limit", "2"]);
    assert_eq!(limited, events[..2]);
    let runs = flo.json(&["workflow", "runs"]);
    expect_only_fields(&runs, &["items", "next_page_token"]);
    assert_eq!(runs["next_page_token"], Value::Null);
    expect_only_fields(
        &runs["items"][0],
        &[
            "run_id",
            "workflow",
            "version",
            "revision",
            "status",
            "terminal",
            "triggered_by",
            "started_at_ms",
            "completed_at_ms",
        ],
    );
    let workflows = flo.json(&["workflow", "list"]);
    expect_only_fields(&workflows, &["items", "next_page_token"]);
    assert_eq!(workflows["items"][0]["name"], "parked");
}

#[test]
fn a_program_is_an_action_and_its_output_that_of_the_run() {
    let node = DevNode::start();
    let flo = node.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("one-step.yaml")]);
    let mut worker = CommandWorker::start(&flo, node.scratch(), "w1", &[("work", "cat")]);
    let start = ["workflow", "start", "one-step", r#"{"n": 1}"#, "--wait"];
    assert_eq!(flo.run(&start).json(), json!({"n": 1}));
    let invoked = flo.run(&["action", "invoke", "work", r#"{"n": 2}"#, "--wait"]);
    assert_eq!(invoked.json(), json!({"n": 2}));
    let action_run_id = flo.text(&["action", "invoke", "work", "--async"]);
    let action_run = flo.json(&["action", "status", &action_run_id]);
    expect_fields(
        &action_run,
        &["status", "outcome", "attempts", "created_at_ms"],
    );

    let workers = flo.json(&["worker", "list"]);
    let items = workers["items"].as_array().expect("a list has items");
    assert!(
        items.iter().any(|item| item["worker_id"] == "w1"),
        "{workers}"
    );
    let info = flo.json(&["worker", "info", "w1"]);
    expect_fields(
        &info,
        &["worker_id", "status", "max_concurrency", "registered_at_ms"],
    );
    assert!(worker.drain().success());
    let _ = flo.text(&["workflow", "disable", "one-step"]);
    flo.refused(&["workflow", "start", "one-step"])
        .expect(3, "workflow_disabled");
    let _ = flo.text(&["workflow", "enable", "one-step"]);
    let run_id = flo.text(&["workflow", "start", "one-step"]);
    let _ = flo.text(&["workflow", "cancel", &run_id, "--reason", "enough"]);
    let run = flo.json(&["workflow", "status", &run_id]);
    assert_eq!(
        (&run["status"], &run["terminal"]),
        (&json!("cancelled"), &json!("flo.Cancelled"))
    );
}

#[test]
fn the_cluster_shows_itself() {
    let node = DevNode::start();
    let status = node.flo().json(&["cluster", "status"]);
    expect_only_fields(&status, &["cluster_id", "leader_id", "term", "nodes"]);
    assert_eq!(status["leader_id"], 1, "{status}");
    let fields = [
        "node_id",
        "address",
        "role",
        "voter",
        "last_log_index",
        "applied_index",
        "snapshot_index",
        "digest",
        "lag",
        "healthy",
        "version",
    ];
    expect_only_fields(&status["nodes"][0], &fields);
    expect_only_fields(&status["nodes"][0]["digest"], &["index", "value"]);
    assert_eq!(status["nodes"][0]["role"], "leader", "{status}");
}

#[test]
fn three_nodes_in_one_process_are_one_cluster() {
    let node = DevNode::start_with(&["--nodes", "3", "--ephemeral"]);
    let _ = node
        .flo_at(1)
        .text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let run_id = node.flo_at(2).text(&["workflow", "start", "parked"]);
    let run = node.flo_at(3).json(&["workflow", "status", &run_id]);
    assert_eq!(run["status"], "waiting", "{run}");
    let status = node.flo_at(3).json(&["cluster", "status"]);
    assert_eq!(
        status["nodes"].as_array().map(Vec::len),
        Some(3),
        "{status}"
    );
}

#[test]
fn what_a_killed_node_had_acknowledged_is_there_when_it_is_back() {
    let mut node = DevNode::start_with(&["--data-dir", "data"]);
    let flo = node.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let run_id = flo.text(&["workflow", "start", "parked", r#"{"n":1}"#]);
    let before = flo.json_lines(&["workflow", "history", &run_id]);
    node.restart();
    assert_eq!(flo.json_lines(&["workflow", "history", &run_id]), before);
    let _ = flo.text(&["workflow", "signal", &run_id, "--type", "go"]);
    let _ = flo.text(&["workflow", "history", &run_id, "--follow"]);
    assert_eq!(
        flo.json(&["workflow", "status", &run_id])["status"],
        "completed"
    );
}

#[test]
fn each_kind_of_failure_has_its_exit_code() {
    let node = DevNode::start();
    let flo = node.flo();
    let code = |line: &[&str]| flo.run(line).code;
    assert_eq!(code(&["workflow", "list"]), 0);
    assert_eq!(code(&["workflow", "status", "wfrun-404"]), 1);
    assert_eq!(code(&["workflow", "start", "missing"]), 1);
    assert_eq!(code(&["workflow", "lost"]), 2);
    assert_eq!(code(&["workflow", "create", "-f", "no/such/file"]), 2);
    let invalid = node.scratch().write("invalid.yaml", "kind: Workflow\n");
    assert_eq!(code(&["workflow", "validate", "-f", &invalid]), 3);
    assert_eq!(code(&["workflow", "validate", "-f", "no/such/file"]), 2);
    assert_eq!(code(&["workflow", "create", "-f", &invalid]), 3);
    let nobody = Flo::at("127.0.0.1:1");
    let refusal = nobody.refused(&["workflow", "list"]);
    refusal.expect(5, "connection_failed").says("expected to");
    let text = nobody.run(&["workflow", "list"]);
    assert!(
        text.stderr.starts_with("error: expected "),
        "{}",
        text.show()
    );
    assert!(text.stderr.contains("\nhint: "), "{}", text.show());
}

#[test]
fn every_verb_explains_itself_with_an_example() {
    let flo = Flo::at("127.0.0.1:1");
    let verbs = "server | dev | workflow create | workflow validate | workflow start | \
        workflow status | workflow history | workflow signal | workflow cancel | workflow list | \
        workflow revisions | workflow runs | workflow show | workflow graph | workflow enable | workflow disable | \
        workflow delete | \
        workflow schedule | workflow trigger | workflow invalidate | plan status | plan reset | \
        action report | action register | action dlq list | action dlq show | action dlq requeue | \
        action dlq purge | action invoke | action status | action runs | action cancel | action list | action delete | \
        action enable | action disable | worker exec | worker list | worker info | worker drain | \
        cluster status | bench start | bench steps | bench signal | bench timers | bench stream | \
        bench parked | bench wasm | bench read | bench plot | \
        completions | stream create | stream append | stream read | \
        stream info | stream list | stream trim | stream delete | stream group create | \
        stream group list | stream group info | stream group pending | stream group delete | kv get | \
        kv set | kv delete | kv scan | ns create | ns list | ns delete";
    let verbs: BTreeSet<&str> = verbs.split(" | ").collect();
    for verb in verbs {
        let mut line: Vec<&str> = verb.split(' ').collect();
        line.push("--help");
        let help = flo.text(&line);
        assert!(help.contains("Example"), "{verb}: {help}");
        assert!(help.contains(&format!("flo {verb}")), "{verb}: {help}");
    }
}

#[test]
fn a_server_stops_on_request() {
    let mut node = DevNode::start();
    let status = node.process().terminate();
    assert!(status.success(), "{status}: {}", node.process().output());
}
