//! Timeouts, executions that are retried, and triggers that a new version replaces.

use super::{CATALOG, SHORT, child_of, start};
use crate::coming_from::{Logged, count};
use flotilla_tests::{CommandWorker, TIMEOUT, wait_until};
use serde_json::{Value, json};

/// A node with both flows, whose first activity has no worker yet.
fn without_database(changes: &[(&str, &str)]) -> (Logged, CommandWorker) {
    let logged = Logged::start();
    let register = ["action", "register", "db-insert", "--max-retries", "0"];
    let _ = logged.flo().text(&register);
    let worker = logged.work("activities", &CATALOG[1..]);
    logged.create("temporal/open-account", &[]);
    let changes = [&SHORT[..], changes].concat();
    logged.create("temporal/onboard-workspace", &changes);
    (logged, worker)
}

fn workspace(name: &str) -> Value {
    json!({"workspace": name})
}

/// The code of the error of the first activity.
fn code(run: &Value) -> &Value {
    &run["steps"]["register"]["output"]["error"]["code"]
}

#[test]
fn a_task_that_no_worker_takes_is_retried_until_no_attempt_is_left() {
    // scheduleToStartTimeout
    let (logged, mut worker) = without_database(&[("queue: PT1M", "queue: 50ms")]);
    let run = logged.run("onboard-workspace", "w-1", &workspace("acme"));
    assert_eq!(
        (&run["status"], code(&run)),
        (&json!("timed_out"), &json!("queue_timeout"))
    );
    assert_eq!(run["steps"]["register"]["attempts"], 4, "{run}");
    assert_eq!(logged.actions("w-1"), Vec::<String>::new());
    assert!(worker.drain().success());
}

#[test]
fn all_attempts_together_have_a_timeout() {
    // scheduleToCloseTimeout
    let (logged, mut worker) = start(&[SHORT[0], SHORT[1], ("total: PT10M", "total: 1s")]);
    let run = logged.run("onboard-workspace", "w-1", &workspace("hanging"));
    assert_eq!(
        (&run["status"], code(&run)),
        (&json!("timed_out"), &json!("total_timeout"))
    );
    assert_eq!(logged.actions("w-1"), ["db-insert"]);
    assert_eq!(count(&logged.history("w-1"), "step_retry"), 0);
    assert!(worker.drain().success());
}

#[test]
fn a_task_whose_worker_has_died_is_retried_after_the_heartbeat_timeout() {
    // heartbeatTimeout
    let (logged, mut worker) = without_database(&[("heartbeat: PT15S", "heartbeat: 1s")]);
    // The command outlives its worker, but not the test.
    let hanging =
        r#"until test -e "$folder/go" || ! test -d "$folder"; do sleep 0.05; done; exit 1"#;
    let mut first = logged.work("first", &[("db-insert", hanging)]);
    logged.begin("onboard-workspace", "w-1", &workspace("acme"));
    logged.called("w-1", "db-insert");
    first.kill();
    let mut second = logged.work("second", &CATALOG[..1]);
    let run = logged.ended("w-1");
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(logged.inputs("w-1", "db-insert").len(), 2);
    let report = logged.flo().json(&["workflow", "report", "w-1"]);
    let attempts = &report["steps"][0]["attempts"];
    assert_eq!(attempts[0]["code"], "heartbeat_timeout", "{attempts}");
    assert_eq!(attempts[1]["outcome"], "success", "{attempts}");
    let _ = logged.node.scratch().write("go", "");
    for worker in [&mut second, &mut worker] {
        assert!(worker.drain().success());
    }
}

#[test]
fn an_execution_is_retried_at_the_activity_of_its_sub_flow_that_failed() {
    let (logged, mut worker) = start(&SHORT);
    let flo = logged.flo();
    let gold = json!({"workspace": "acme", "plan": "gold"});
    let run = logged.run("onboard-workspace", "w-1", &gold);
    assert_eq!(run["status"], "failed", "{run}");
    let child = child_of(&logged, "w-1");
    assert_eq!(logged.inputs(&child, "http-request").len(), 2);
    let before = logged.actions("w-1");

    let _ = logged.node.scratch().write("bank", "");
    let _ = flo.text(&["workflow", "resume", "w-1", "--wait"]);
    let run = flo.json(&["workflow", "status", "w-1"]);
    assert_eq!(run["output"]["account"], "sub-1", "{run}");
    let calls = logged.inputs(&child, "http-request");
    let paths: Vec<&Value> = calls.iter().map(|call| &call["path"]).collect();
    assert_eq!(paths, ["/customers", "/subscriptions", "/subscriptions"]);
    let after = [&before[..], &["send-email".to_owned()]].concat();
    assert_eq!(logged.actions("w-1"), after);
    let runs = flo.json(&["workflow", "runs", "--workflow", "open-account"]);
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "{runs}");

    // The whole execution again, as a new one.
    let _ = flo.text(&["workflow", "retry", "w-1", "--run-id", "w-2", "--wait"]);
    assert_eq!(logged.ended("w-2")["retried_from"], "w-1");
    assert_eq!(logged.actions("w-2").len(), after.len());
    assert!(worker.drain().success());
}

#[test]
fn a_new_version_takes_over_the_trigger_and_open_runs_keep_their_version() {
    let logged = Logged::start();
    let held = r#"until test -e "$folder/go"; do sleep 0.05; done; echo ok"#;
    let actions = [("index-object", held), ("store-object", "echo ok")];
    let mut worker = logged.work("activities", &actions);
    let flo = logged.flo();
    let _ = flo.text(&["stream", "create", "uploads"]);
    let append = |object: &str| {
        let record = json!({ "object": object }).to_string();
        let _ = flo.text(&["stream", "append", "uploads", &record]);
    };
    // The ids of the runs, newest first.
    let started = |count: usize| {
        wait_until("the runs", TIMEOUT, || {
            let runs = flo.json(&["workflow", "runs", "--workflow", "index-upload"]);
            let items = runs["items"].as_array().into_iter().flatten();
            let ids: Vec<String> = items
                .filter_map(|run| run["run_id"].as_str().map(str::to_owned))
                .collect();
            (ids.len() == count).then_some(ids).ok_or(runs.to_string())
        })
    };
    logged.create("temporal/index-upload", &[]);
    append("a.pdf");
    let [first] = &started(1)[..] else {
        panic!("one run");
    };
    logged.called(first, "index-object");
    let next = [
        (r#"version: "1.0.0""#, r#"version: "2.0.0""#),
        ("index-object", "store-object"),
    ];
    logged.create("temporal/index-upload", &next);
    append("b.pdf");
    let second = started(2).swap_remove(0);
    let run = logged.ended(&second);
    assert_eq!(
        (&run["version"], &run["status"]),
        (&json!("2.0.0"), &json!("completed"))
    );
    let stored = [json!({"object": "b.pdf", "by": "trigger"})];
    assert_eq!(logged.inputs(&second, "store-object"), stored);

    let _ = logged.node.scratch().write("go", "");
    let run = logged.ended(first);
    assert_eq!(
        (&run["version"], &run["status"]),
        (&json!("1.0.0"), &json!("completed"))
    );
    assert_eq!(logged.actions(first), ["index-object"]);
    assert_eq!(started(2).len(), 2);
    assert!(worker.drain().success());
}
