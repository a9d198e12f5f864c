//! A node that dies while it runs a WASM action, perhaps because of it (A4).

use crate::files::fixture;
use flotilla_tests::{Cluster, Flo, TIMEOUT, wait_until};
use serde_json::Value;

/// Registers an action that never answers, whose tasks have one attempt.
fn register(flo: &Flo) {
    let module = fixture("looping.wat");
    let limits = ["--timeout-ms", "600000", "--max-retries", "0"];
    let register = ["action", "register", "looping", "--wasm", &module];
    let _ = flo.text(&[&register[..], &limits].concat());
}

/// Starts a task on a node without one: each worker that has a task is drained.
fn invoke_elsewhere(flo: &Flo, count: usize) {
    let _ = flo.text(&["action", "invoke", "looping", "--async"]);
    let runs = await_runs(flo, "running", |running| running == count);
    for run in runs {
        let worker = run["worker_id"].as_str().unwrap_or_default();
        let _ = flo.text(&["worker", "drain", worker]);
    }
}

/// The action's runs, once `is_reached` holds for their number by status.
fn await_runs(flo: &Flo, status: &str, is_reached: impl Fn(usize) -> bool) -> Vec<Value> {
    wait_until("action runs of a status", TIMEOUT, || {
        let runs = flo.json(&["action", "runs", "looping"]);
        let items = runs["items"].as_array().cloned().unwrap_or_default();
        let count = items.iter().filter(|run| run["status"] == status).count();
        match is_reached(count) {
            true => Ok(items),
            false => Err(runs.to_string()),
        }
    })
}

#[test]
fn a_task_of_a_node_that_was_killed_has_used_its_attempt() {
    let mut cluster = Cluster::of(&[1], &[]);
    let flo = cluster.flo();
    register(&flo);
    let _ = flo.text(&["action", "invoke", "looping", "--async"]);
    await_runs(&flo, "running", |count| count == 1);
    cluster.kill(1);
    cluster.restart(1);
    let runs = await_runs(&flo, "failed", |count| count == 1);
    assert_eq!(runs[0]["error_code"], "node_lost", "{runs:#?}");
    assert_eq!(runs[0]["attempts"], 1, "{runs:#?}");
}

#[test]
fn the_leader_takes_the_tasks_of_a_lost_node_and_leaves_those_of_the_others() {
    let mut cluster = Cluster::of(&[1, 2, 3], &[]);
    let flo = cluster.flo();
    register(&flo);
    for count in 1..=3 {
        invoke_elsewhere(&flo, count);
    }
    let lost = cluster.followers()[0];
    cluster.kill(lost);
    let runs = await_runs(&flo, "failed", |count| count > 0);
    let mut codes: Vec<&Value> = runs.iter().map(|run| &run["error_code"]).collect();
    codes.sort_by_key(|code| code.is_null());
    assert_eq!(
        codes,
        ["node_lost".into(), Value::Null, Value::Null]
            .iter()
            .collect::<Vec<_>>()
    );
    cluster.restart(lost);
    cluster.await_health();
}
