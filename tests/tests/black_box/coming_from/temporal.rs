//! "Coming from Temporal-style flows".

mod recovery;

use super::{Logged, count, outcomes};
use crate::sdk::SdkWorker;
use flotilla_client::{ActionResult, HandlerError};
use flotilla_tests::{CommandWorker, DevNode, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The activities. The database rejects the workspace `broken`, and the storage of it never ends.
const CATALOG: [(&str, &str); 10] = [
    (
        "db-insert",
        r#"case $input in
             *flaky*) grep -c "^$FLO_RUN_ID db-insert" "$folder/calls.log" | grep -q 3 || exit 1;;
             *hanging*) exec sleep 600;;
           esac
           echo '{"inserted": 1}'"#,
    ),
    (
        "db-create",
        r#"case $input in
             *broken*)
               until grep -q "^$FLO_RUN_ID storage-create" "$folder/calls.log"; do sleep 0.05; done
               echo 'the disk is full' >&2; exit 1;;
             *) echo '{"database": "db-1"}';;
           esac"#,
    ),
    (
        "storage-create",
        r#"case $input in *broken*) exec sleep 600;; *) echo '{"bucket": "b-1"}';; esac"#,
    ),
    ("storage-limit", "echo ok"),
    (
        "http-request",
        r#"case $input in
             *customers*stuck*) exec sleep 600;;
             *customers*) echo '{"id": "cus-1"}';;
             *gold*) test -e "$folder/bank" && echo '{"id": "sub-1"}';;
             *) echo '{"id": "sub-1"}';;
           esac"#,
    ),
    ("send-email", "echo ok"),
    (
        "export-tables",
        r#"until test -e "$folder/go"; do sleep 0.05; done; echo ok"#,
    ),
    ("index-object", "echo ok"),
    ("book-payment", "echo ok"),
    ("send-letter", "echo ok"),
];

/// Short delays instead of those of the example.
const SHORT: [(&str, &str); 2] = [
    ("initial_delay_ms: 1000", "initial_delay_ms: 1"),
    ("PT1S", "10ms"),
];

/// A node with a worker for the activities and with both flows.
fn start(changes: &[(&str, &str)]) -> (Logged, CommandWorker) {
    start_at(Logged::start(), changes)
}

fn start_at(logged: Logged, changes: &[(&str, &str)]) -> (Logged, CommandWorker) {
    let worker = logged.work("activities", &CATALOG);
    logged.create("temporal/open-account", &[]);
    logged.create("temporal/onboard-workspace", changes);
    (logged, worker)
}

#[test]
fn each_construct_of_the_flow_runs_in_its_order_with_its_input() {
    let (logged, mut worker) = start(&SHORT);
    let run = logged.run("onboard-workspace", "w-1", &json!({"workspace": "acme"}));
    assert_eq!(run["terminal"], "flo.Completed", "{run}");
    let provisioned = json!({"database": {"database": "db-1"}, "storage": "ok"});
    assert_eq!(run["output"]["provisioned"], provisioned, "{run}");
    assert_eq!(run["output"]["account"], "sub-1", "{run}");
    let waited_ms = run["output"]["waited_ms"].as_u64();
    assert!(waited_ms.is_some_and(|ms| ms >= 10), "{run}");

    let mut calls = logged.calls("w-1");
    // The branches run at the same time; storage is a sequence.
    let middle = calls.drain(1..4).collect::<Vec<_>>();
    let row = json!({"id": "acme", "plan": "free"});
    let expected = [
        ("db-insert", json!({"table": "workspaces", "row": row})),
        (
            "send-email",
            json!({"workspace": "acme", "account": "sub-1"}),
        ),
    ];
    let owned = |(action, input): (&str, Value)| (action.to_owned(), input);
    assert_eq!(calls, expected.map(owned));
    let name = json!({"name": "acme"});
    assert!(
        middle.contains(&owned(("db-create", name.clone()))),
        "{middle:?}"
    );
    let storage: Vec<_> = middle
        .into_iter()
        .filter(|(action, _)| action != "db-create")
        .collect();
    let expected = [
        ("storage-create", name),
        ("storage-limit", json!({"bucket": "b-1", "gigabytes": 10})),
    ];
    assert_eq!(storage, expected.map(owned));

    // Every event names the step of the definition.
    let mut left = outcomes(&logged.history("w-1"));
    left[2..5].sort();
    let expected = [
        "register success",
        "size default",
        "provision/database/database success",
        "provision/storage/bucket success",
        "provision/storage/quota success",
        "provision success",
        "settle success",
        "bill success",
        "welcome success",
    ];
    assert_eq!(left, expected);

    // The sub-flow is a run with this one as parent.
    let child = child_of(&logged, "w-1");
    let post = |path: &str, body: Value| json!({"method": "POST", "path": path, "body": body});
    let expected = [
        post("/customers", json!({"name": "acme"})),
        post(
            "/subscriptions",
            json!({"customer": "cus-1", "plan": "free"}),
        ),
    ];
    assert_eq!(logged.inputs(&child, "http-request"), expected);
    let child = logged.ended(&child);
    assert_eq!(
        child["output"],
        json!({"account": "sub-1", "parent": "w-1"})
    );
    assert!(worker.drain().success());
}

/// The child run of a run.
fn child_of(logged: &Logged, run_id: &str) -> String {
    wait_until("a child run", TIMEOUT, || {
        let events = logged.flo().json_lines(&["workflow", "history", run_id]);
        let child = events.iter().find(|event| event["type"] == "child_started");
        let child = child.and_then(|event| event["detail"].as_str());
        child.map(str::to_owned).ok_or(format!("{events:?}"))
    })
}

#[test]
fn an_approval_is_approved_rejected_or_runs_out_of_time() {
    let (logged, mut worker) = start(&SHORT);
    let flo = logged.flo();
    let input = json!({"workspace": "acme", "plan": "enterprise"});
    for run_id in ["yes", "no"] {
        logged.begin("onboard-workspace", run_id, &input);
        let _ = logged.waiting(run_id, "approve", "approval");
        assert_eq!(logged.actions(run_id), ["db-insert"]);
    }
    let _ = flo.text(&["workflow", "approve", "yes", "--comment", "fine"]);
    let run = logged.ended("yes");
    assert_eq!(run["terminal"], "flo.Completed", "{run}");
    assert_eq!(run["steps"]["size"]["outcome"], "approve", "{run}");
    assert_eq!(logged.inputs("yes", "send-email").len(), 1);

    let _ = flo.text(&["workflow", "reject", "no", "--comment", "unpaid"]);
    let run = logged.ended("no");
    assert_eq!(run["terminal"], "Refused", "{run}");
    let refused = |outcome: &str, reason: Value| json!({"workspace": "acme", "outcome": outcome, "reason": reason});
    assert_eq!(run["output"], refused("rejected", json!("unpaid")), "{run}");
    assert_eq!(logged.actions("no"), ["db-insert"]);

    let changes = [&SHORT[..], &[("P3D", "50ms")]].concat();
    logged.create("temporal/onboard-workspace", &changes);
    let run = logged.run("onboard-workspace", "late", &input);
    assert_eq!(run["terminal"], "Refused", "{run}");
    assert_eq!(run["output"], refused("timeout", Value::Null), "{run}");
    assert_eq!(logged.actions("late"), ["db-insert"]);
    assert!(worker.drain().success());
}

#[test]
fn a_failed_branch_cancels_the_others_and_fails_the_run() {
    let (logged, mut worker) = start(&SHORT);
    let run = logged.run("onboard-workspace", "w-1", &json!({"workspace": "broken"}));
    assert_eq!(run["status"], "failed", "{run}");
    let output = &run["steps"]["provision"]["output"];
    assert_eq!(output["error"]["branch"], "database", "{run}");
    assert_eq!(
        output["branches"]["storage"]["outcome"], "cancelled",
        "{run}"
    );
    let mut actions = logged.actions("w-1");
    actions[1..].sort();
    // No email is sent, and no limit is set.
    assert_eq!(actions, ["db-insert", "db-create", "storage-create"]);
    assert!(worker.drain().success());
}

#[test]
fn a_task_is_retried_as_its_policy_says() {
    let changes = [&SHORT[..], &[("attempt: PT30S", "attempt: 100ms")]].concat();
    let (logged, mut worker) = start(&SHORT);
    let run = logged.run("onboard-workspace", "flaky", &json!({"workspace": "flaky"}));
    assert_eq!(run["status"], "completed", "{run}");
    let row = json!({"id": "flaky", "plan": "free"});
    let insert = json!({"table": "workspaces", "row": row});
    assert_eq!(logged.inputs("flaky", "db-insert"), vec![insert; 3]);

    // startToCloseTimeout
    logged.create("temporal/onboard-workspace", &changes);
    let run = logged.run(
        "onboard-workspace",
        "hanging",
        &json!({"workspace": "hanging"}),
    );
    assert_eq!(run["status"], "timed_out", "{run}");
    let error = &run["steps"]["register"]["output"]["error"];
    assert_eq!(error["code"], "attempt_timeout", "{run}");
    assert_eq!(count(&logged.history("hanging"), "step_timeout"), 4);
    assert!(worker.drain().success());
}

#[test]
fn a_non_retryable_error_ends_the_task() {
    let logged = Logged::start();
    let register = ["action", "register", "db-insert", "--max-retries", "0"];
    let _ = logged.flo().text(&register);
    let others: Vec<(&str, &str)> = CATALOG.into_iter().skip(1).collect();
    let mut worker = logged.work("activities", &others);
    logged.create("temporal/open-account", &[]);
    logged.create("temporal/onboard-workspace", &SHORT);
    let attempts: Arc<Mutex<Vec<&str>>> = Arc::default();
    let codes = attempts.clone();
    let sdk = SdkWorker::start(logged.node.endpoint(), "db-insert", move |_| {
        let mut codes = codes.lock().expect("no handler panics");
        let code = match codes.len() {
            0 => "CONNECTION_LOST",
            _ => "EXECUTION_TOKEN_INVALID",
        };
        codes.push(code);
        let error = HandlerError::retry("no access").with_code(code);
        Err::<ActionResult, _>(error)
    });
    let run = logged.run("onboard-workspace", "w-1", &json!({"workspace": "acme"}));
    assert_eq!(run["status"], "failed", "{run}");
    let error = &run["steps"]["register"]["output"]["error"];
    assert_eq!(error["code"], "EXECUTION_TOKEN_INVALID", "{run}");
    let codes = attempts.lock().expect("no handler panics").clone();
    assert_eq!(codes, ["CONNECTION_LOST", "EXECUTION_TOKEN_INVALID"]);
    assert_eq!(logged.actions("w-1"), Vec::<String>::new());
    sdk.drain();
    assert!(worker.drain().success());
}

#[test]
fn a_timer_survives_a_crash_and_a_run_keeps_its_version() {
    let logged = Logged {
        node: DevNode::start_with(&["--data-dir", "data"]),
    };
    let (mut logged, mut worker) = start_at(logged, &[]);
    logged.begin("onboard-workspace", "old", &json!({"workspace": "acme"}));
    let _ = logged.waiting("old", "settle", "timer");
    let next = [
        (r#"version: "1.0.0""#, r#"version: "2.0.0""#),
        ("@actions/send-email", "@actions/send-letter"),
        ("PT1S", "10ms"),
    ];
    logged.create("temporal/onboard-workspace", &next);
    logged.node.restart();
    let run = logged.ended("old");
    assert_eq!(run["version"], "1.0.0", "{run}");
    assert!(run["output"]["waited_ms"].as_u64() >= Some(1_000), "{run}");
    assert_eq!(
        logged.actions("old").last().map(String::as_str),
        Some("send-email")
    );
    assert_eq!(logged.inputs("old", "db-insert").len(), 1);

    let run = logged.run("onboard-workspace", "new", &json!({"workspace": "acme"}));
    assert_eq!(run["version"], "2.0.0", "{run}");
    assert_eq!(
        logged.actions("new").last().map(String::as_str),
        Some("send-letter")
    );
    let found = logged
        .flo()
        .json(&["workflow", "runs", "--where", "workspace = 'acme'"]);
    assert_eq!(found["items"].as_array().map(Vec::len), Some(2), "{found}");
    assert!(worker.drain().success());
}

#[test]
fn cancelling_a_flow_cancels_its_sub_flow() {
    let (logged, mut worker) = start(&SHORT);
    logged.begin("onboard-workspace", "w-1", &json!({"workspace": "stuck"}));
    let child = child_of(&logged, "w-1");
    logged.called(&child, "http-request");
    let _ = logged.flo().text(&["workflow", "cancel", "w-1"]);
    let run = logged.ended("w-1");
    assert_eq!(run["status"], "cancelled", "{run}");
    assert_eq!(logged.ended(&child)["status"], "cancelled");
    assert_eq!(logged.inputs("w-1", "send-email"), Vec::<Value>::new());
    assert!(worker.drain().success());
}

#[test]
fn a_schedule_skips_a_firing_while_a_run_is_open() {
    let logged = Logged::start();
    let mut worker = logged.work("activities", &CATALOG);
    let flo = logged.flo();
    logged.create("temporal/nightly-export", &[]);
    let schedule = flo.json(&["workflow", "schedule", "nightly-export"]);
    let next = schedule["next_at_ms"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert_eq!(next.len(), 5, "{schedule}");
    for time in next {
        let day_ms = 24 * 60 * 60 * 1_000;
        let time_of_day = time.as_u64().map(|ms| ms % day_ms);
        assert_eq!(time_of_day, Some(day_ms / 12), "02:00 UTC: {schedule}");
    }

    let interval = [(r#"cron: "0 2 * * *", timezone: UTC"#, "interval: 100")];
    logged.create("temporal/nightly-export", &interval);
    wait_until("a skipped firing", TIMEOUT, || {
        let schedule = flo.json(&["workflow", "schedule", "nightly-export"]);
        let is_skipped = schedule["skipped_count"].as_u64() >= Some(2);
        is_skipped.then_some(()).ok_or(schedule.to_string())
    });
    let runs = flo.json(&["workflow", "runs", "--workflow", "nightly-export"]);
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "{runs}");
    let run_id = runs["items"][0]["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let _ = flo.text(&["workflow", "disable", "nightly-export"]);
    let _ = logged.node.scratch().write("go", "");
    assert_eq!(logged.ended(&run_id)["status"], "completed");
    let expected = [json!({"format": "csv"})];
    assert_eq!(logged.inputs(&run_id, "export-tables"), expected);
    assert!(worker.drain().success());
}

#[test]
fn a_platform_event_starts_one_run_and_so_does_a_repeated_webhook() {
    let logged = Logged::start();
    let mut worker = logged.work("activities", &CATALOG);
    let flo = logged.flo();
    let _ = flo.text(&["stream", "create", "uploads"]);
    logged.create("temporal/index-upload", &[]);
    let records = [r#"{"object": "a.pdf"}"#, r#"{"object": "b.pdf"}"#];
    let _ = flo.text(&["stream", "append", "uploads", records[0], records[1]]);
    let mut inputs = wait_until("two runs", TIMEOUT, || {
        let runs = flo.json(&["workflow", "runs", "--workflow", "index-upload"]);
        let runs: Vec<&Value> = runs["items"].as_array().into_iter().flatten().collect();
        let ids: Vec<&str> = runs
            .iter()
            .filter_map(|run| run["run_id"].as_str())
            .collect();
        match ids.len() {
            2 => Ok(ids
                .iter()
                .flat_map(|id| {
                    assert_eq!(logged.ended(id)["status"], "completed");
                    logged.inputs(id, "index-object")
                })
                .collect::<Vec<Value>>()),
            _ => Err(format!("{runs:?}")),
        }
    });
    inputs.sort_by_key(Value::to_string);
    let expected = ["a.pdf", "b.pdf"].map(|object| json!({"object": object, "by": "trigger"}));
    assert_eq!(inputs, expected);

    logged.create("temporal/receive-payment", &[]);
    let start = ["workflow", "start", "receive-payment", r#"{"amount": 5}"#];
    let deliver = || flo.text(&[&start[..], &["--idempotency-key", "delivery-1"]].concat());
    let first = deliver();
    assert_eq!(logged.ended(&first)["status"], "completed");
    assert_eq!(deliver(), first);
    assert_eq!(
        logged.inputs(&first, "book-payment"),
        [json!({"amount": 5})]
    );
    flo.refused(&start).expect(3, "idempotency_key_missing");
    let runs = flo.json(&["workflow", "runs", "--workflow", "receive-payment"]);
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "{runs}");
    assert_eq!(count(&logged.history(&first), "action_started"), 1);

    // Tenants do not see each other's runs.
    flo.within("other")
        .refused(&["workflow", "status", &first])
        .expect(1, "run_not_found");
    assert!(worker.drain().success());
}
