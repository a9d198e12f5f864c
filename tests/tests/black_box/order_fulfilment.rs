//! One workflow with every construct: it runs to its end, also while the leader is killed at every tenth transition.

use crate::files::fixture;
use flotilla_tests::{Cluster, CommandWorker, DevNode, Flo, Scratch, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::fs;

/// The actions of the workflow. Each run of one leaves a line in a file; its output is its input.
const ACTIONS: [&str; 11] = [
    "check-stock",
    "mail",
    "reserve",
    "release",
    "pick",
    "unpick",
    "render",
    "send",
    "ship",
    "page-ops",
    "tidy",
];
/// Parcels of each order.
const PARCELS: u32 = 20;
/// Transitions between two kills.
const KILL_EVERY: usize = 10;

/// The workflow as it is published, with a short pause.
fn example() -> String {
    let text = fs::read_to_string(fixture("order-fulfilment.yaml")).expect("a fixture");
    changed(text, &[("PT15M", "100ms")])
}

/// The same, with a state, a record and perhaps a failure at the end, and with two compensations.
fn extended() -> String {
    let changes = [
        ("state: {optOut: false}", "state: {optOut: false, shipped: 0}\noutput: $.state"),
        (
            "{name: pick, run: \"@actions/pick\"}",
            "{name: pick, run: \"@actions/pick\", compensate: {run: \"@actions/unpick\"}}",
        ),
        ("concurrency: 10, do:", "concurrency: 2, merge: {shipped: sum}, do:"),
        ("inputMapping: {p: \"$.parcel\"}", "inputMapping: {p: \"$.parcel\"}, set: {shipped: 1}"),
        (
            "    transitions: {success: flo.Completed, failure: flo.Failed}\nonError:",
            "    transitions: {success: tell, failure: flo.Failed}
  tell:
    emit: {stream: shipments, key: $.input.vm, payload: {run: $.flo.run_id, shipped: $.state.shipped}}
    transitions: {success: last}
  last: {switch: [{when: input.fails, goto: fall}], default: flo.Completed}
  fall: {run: \"@actions/missing\", transitions: {success: flo.Completed, failure: flo.Failed}}
onError:",
        ),
    ];
    changed(example(), &changes)
}

fn changed(mut text: String, changes: &[(&str, &str)]) -> String {
    for (old, new) in changes {
        assert!(text.contains(old), "the fixture has no longer {old}");
        text = text.replace(old, new);
    }
    text
}

/// Registers the actions and starts a worker for them, which notes each run and its action in a file.
fn work(flo: &Flo, scratch: &Scratch) -> CommandWorker {
    for action in ACTIONS {
        let retries = ["--max-retries", "9", "--retry-delay-ms", "20"];
        let _ = flo.text(&[&["action", "register", action], &retries[..]].concat());
    }
    let log = scratch.path("actions.log");
    let log = log.display();
    let script = format!("echo \"$FLO_RUN_ID $FLO_ACTION\" >> {log}; sleep 0.1; cat");
    let actions = ACTIONS.map(|name| (name, script.as_str()));
    CommandWorker::start(flo, scratch, "shop", &actions)
}

/// How often an action was run for a run.
fn count(scratch: &Scratch, run_id: &str, action: &str) -> usize {
    let log = fs::read_to_string(scratch.path("actions.log")).unwrap_or_default();
    let line = format!("{run_id} {action}");
    log.lines().filter(|found| *found == line).count()
}

/// Approves what the run asks for, once it does.
fn approve(flo: &Flo, run_id: &str) {
    wait_until("an approval", TIMEOUT, || {
        let run = flo.json(&["workflow", "status", run_id]);
        match run["waiting_for"] == "approval" {
            true => Ok(()),
            false => Err(run.to_string()),
        }
    });
    let _ = flo.text(&["workflow", "approve", run_id, "--step", "gate"]);
}

#[test]
fn the_example_has_no_finding_and_runs_to_its_end() {
    let node = DevNode::start();
    let flo = node.flo();
    let file = fixture("order-fulfilment.yaml");
    let validated = flo.text(&["workflow", "validate", "-f", &file]);
    assert!(validated.ends_with("is valid"), "{validated}");
    let file = node.scratch().write("short.yaml", example());
    let mut worker = work(&flo, node.scratch());
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let input = json!({"amount": 2000, "parcels": [1, 2, 3]}).to_string();
    let start = ["workflow", "start", "order-fulfilment", &input];
    let run_id = flo.text(&[&start[..], &["--run-id", "order"]].concat());
    approve(&flo, &run_id);
    let run = ended(&flo, &run_id);
    assert_eq!(run["terminal"], "flo.Completed", "{run}");
    let shipped = json!([{"p": 1}, {"p": 2}, {"p": 3}]);
    assert_eq!(run["output"], shipped, "{run}");
    assert_eq!(run["steps"]["decide"]["outcome"], "gate", "{run}");
    assert_eq!(run["steps"]["gate"]["outcome"], "approved", "{run}");
    assert!(worker.drain().success());
}

/// The run, once it has ended.
fn ended(flo: &Flo, run_id: &str) -> Value {
    wait_until("the end of the run", TIMEOUT, || {
        let run = flo.json(&["workflow", "status", run_id]);
        match run["completed_at_ms"].is_u64() {
            true => Ok(run),
            false => Err(run.to_string()),
        }
    })
}

/// Transitions so far: steps that were left and iterations that ended.
fn transitions(flo: &Flo, run_id: &str) -> usize {
    let events = flo.json_lines(&["workflow", "history", run_id]);
    let is_transition = |event: &&Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        ["step_completed", "iteration_ended"].contains(&kind)
    };
    events.iter().filter(is_transition).count()
}

#[test]
fn runs_lose_nothing_while_the_leader_is_killed_at_every_tenth_transition() {
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let file = cluster.scratch().write("extended.yaml", extended());
    let _ = flo.text(&["workflow", "create", "-f", &file]);
    let mut worker = work(&flo, cluster.scratch());
    let parcels: Vec<u32> = (0..PARCELS).collect();
    let start = |run_id: &str, vm: &str, is_failing: bool| {
        let input = json!({"vm": vm, "amount": 5, "parcels": parcels, "fails": is_failing});
        let input = input.to_string();
        let start = ["workflow", "start", "order-fulfilment", &input];
        flo.text(&[&start[..], &["--run-id", run_id]].concat())
    };
    // The second one waits for the first one.
    let completing = [
        start("first", "vm-1", false),
        start("second", "vm-1", false),
        start("third", "vm-2", false),
    ];
    let failing = start("failing", "vm-3", true);
    let all = [&completing[..], std::slice::from_ref(&failing)].concat();

    let mut kills_count = 0;
    let mut next = KILL_EVERY;
    let is_open = |run: &String| {
        let run = flo.json(&["workflow", "status", run]);
        run["completed_at_ms"].is_null()
    };
    while all.iter().any(is_open) {
        let made: usize = all.iter().map(|run| transitions(&flo, run)).sum();
        if made >= next {
            let leader = cluster.leader();
            println!("after {made} transitions: node {leader} is killed");
            cluster.kill(leader);
            // Another node leads before it returns.
            let _ = cluster.leader();
            cluster.restart(leader);
            kills_count += 1;
            next = made + KILL_EVERY;
        }
    }
    assert!(kills_count >= 5, "only {kills_count} kills");
    cluster.await_health();
    for run in &completing {
        let run = ended(&flo, run);
        assert_eq!(run["terminal"], "flo.Completed", "{run}");
        assert_eq!(
            run["output"],
            json!({"optOut": false, "shipped": PARCELS}),
            "{run}"
        );
    }
    expect_undone(&flo, &failing);
    for run in &all {
        for action in ["check-stock", "mail", "reserve", "pick", "render", "send"] {
            assert!(
                count(cluster.scratch(), run, action) >= 1,
                "{run}: {action}"
            );
        }
        assert!(
            count(cluster.scratch(), run, "ship") >= parcels.len(),
            "{run}"
        );
    }
    assert!(count(cluster.scratch(), &failing, "page-ops") >= 1);
    expect_records(&flo, &all);
    assert!(worker.drain().success());
}

/// The run has failed, and was undone in the reverse order.
fn expect_undone(flo: &Flo, run_id: &str) {
    let run = ended(flo, run_id);
    assert_eq!(run["status"], "failed", "{run}");
    assert_eq!(run["compensation"], "done", "{run}");
    let events = flo.json_lines(&["workflow", "history", run_id]);
    let undone: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "compensation_completed")
        .filter_map(|event| event["step"].as_str())
        .collect();
    assert_eq!(undone, ["pick", "reserve"]);
}

/// Each run has appended one record, with what the state had then.
fn expect_records(flo: &Flo, runs: &[String]) {
    let page = flo.json(&["stream", "read", "shipments"]);
    let records = page["items"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<Value> = records
        .iter()
        .map(|record| record["payload"].clone())
        .collect();
    found.sort_by_key(|payload| payload["run"].as_str().map(str::to_owned));
    let mut runs = runs.to_vec();
    runs.sort();
    let expected: Vec<Value> = runs
        .iter()
        .map(|run| json!({"run": run, "shipped": PARCELS}))
        .collect();
    assert_eq!(found, expected);
}
