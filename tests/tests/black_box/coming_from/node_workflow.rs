//! "Coming from node-workflow".

use super::{Logged, count};
use crate::sdk::SdkWorker;
use flotilla_client::ActionResult;
use flotilla_tests::{CommandWorker, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The tasks of the sample workflow.
const TASKS: [(&str, &str); 5] = [
    (
        "a-task",
        r#"case $input in
             *'"foo":false'*) echo '{"foo": true}' > "$FLO_STATE_PATCH"; echo 'Foo was not defined' >&2; exit 1;;
             *broken*) echo 'it broke' >&2; exit 1;;
             *slow*) exec sleep 600;;
             *) echo '{}';;
           esac"#,
    ),
    (
        "a-fallback",
        r#"case $input in
             *hopeless*) echo 'no recovery' >&2; exit 1;;
             *slow*) echo '{"the_err": "too slow"}' > "$FLO_STATE_PATCH";;
             *) echo '{"the_err": "it broke"}' > "$FLO_STATE_PATCH";;
           esac"#,
    ),
    (
        "another-task",
        r#"case $input in *hanging*) exec sleep 600;; *) echo ok;; esac"#,
    ),
    (
        "a-task-which-will-fail",
        "echo 'as its name says' >&2; exit 1",
    ),
    ("a-fallback-task", "echo ok"),
];

#[test]
fn a_task_is_run_again_then_recovered_by_its_fallback() {
    let logged = Logged::start();
    let mut worker = logged.work("runner", &TASKS);
    logged.create("node-workflow/a-task", &[]);
    let run = logged.run("a-task", "good", &json!({}));
    assert_eq!(
        run["output"],
        json!({"foo": true, "the_err": null}),
        "{run}"
    );
    let body = |foo: bool, job: Value| json!({"foo": foo, "job": job});
    let expected = [body(false, json!({})), body(true, json!({}))];
    assert_eq!(logged.inputs("good", "a-task"), expected);

    let job = json!({"host": "broken"});
    let run = logged.run("a-task", "broken", &job);
    let state = json!({"foo": true, "the_err": "it broke"});
    assert_eq!((&run["output"], &run["state"]), (&state, &state), "{run}");
    assert_eq!(run["triggered_by"], "api", "{run}");
    let expected = [false, true, true].map(|foo| body(foo, job.clone()));
    assert_eq!(logged.inputs("broken", "a-task"), expected);
    let recovered = [json!({"err": "it broke", "job": job})];
    assert_eq!(logged.inputs("broken", "a-fallback"), recovered);

    let run = logged.run(
        "a-task",
        "hopeless",
        &json!({"host": "broken", "is": "hopeless"}),
    );
    assert_eq!(run["status"], "failed", "{run}");
    let output = &run["steps"]["a-task"]["output"];
    assert_eq!(output["error"]["message"], "no recovery", "{run}");

    logged.create("node-workflow/a-task", &[("PT30S", "100ms")]);
    let run = logged.run("a-task", "slow", &json!({"host": "slow"}));
    assert_eq!(run["output"]["the_err"], "too slow", "{run}");
    assert_eq!(count(&logged.history("slow"), "step_timeout"), 2);
    let [recovered] = &logged.inputs("slow", "a-fallback")[..] else {
        panic!("one call");
    };
    assert_eq!(
        recovered["err"],
        "expected the attempt to end within 100 ms, but it did not"
    );
    assert!(worker.drain().success());
}

#[test]
fn a_chain_fails_and_its_onerror_chain_follows() {
    let logged = Logged::start();
    let mut worker = logged.work("runner", &TASKS);
    logged.create("node-workflow/a-task", &[]);
    logged.create("node-workflow/sample-workflow", &[]);
    let run = logged.run("sample-workflow", "sample", &json!({"param": 1}));
    assert_eq!(run["status"], "failed", "{run}");
    let before = json!({"foo": true, "the_err": null});
    let failed = "a-task-which-will-fail";
    let message = format!("step \"{failed}\" failed: as its name says");
    let expected = [
        (
            "another-task",
            json!({"job": {"param": 1}, "before": before}),
        ),
        (failed, json!({"param": 1})),
        (
            "a-fallback-task",
            json!({"error": message, "code": "failure", "task": failed}),
        ),
    ];
    let expected = expected.map(|(action, input)| (action.to_owned(), input));
    assert_eq!(logged.calls("sample"), expected);
    // chain_results, onerror_results
    let results = |step: &str| run["steps"][step]["outcome"].clone();
    let steps = ["a-task", "another-task", failed, "a-fallback-task"];
    let outcomes = ["success", "success", "failure", "success"];
    assert_eq!(steps.map(results), outcomes);

    // The timeout of the workflow ends it even if the task has time left.
    logged.create("node-workflow/sample-workflow", &[("PT5M", "300ms")]);
    let run = logged.run("sample-workflow", "late", &json!({"host": "hanging"}));
    assert_eq!(run["status"], "timed_out", "{run}");
    assert_eq!(run["detail"], "workflow timeout", "{run}");
    let [error] = &logged.inputs("late", "a-fallback-task")[..] else {
        panic!("one call");
    };
    assert_eq!(error["code"], "workflow_timeout");
    assert_eq!(logged.inputs("late", failed), Vec::<Value>::new());
    assert!(worker.drain().success());
}

/// The tasks of the provisioning chain; what they do depends on the machine.
const PROVISIONING: [(&str, &str); 8] = [
    (
        "allocate-ip",
        r#"case $input in *crowded*) echo 'no address left' >&2; exit 1;; *) echo '{"ip": "10.0.0.1"}';; esac"#,
    ),
    ("allocate-spare-ip", r#"echo '{"ip": "10.9.9.9"}'"#),
    (
        "reserve-server",
        r#"case $input in
             *busy*) if mkdir "$folder/reserve-$FLO_RUN_ID" 2> /dev/null; then
                       echo queue > "$FLO_OUTCOME_FILE"
                       date +%s500 > "$folder/exec-after"
                       echo "{\"exec_after\": $(cat "$folder/exec-after")}"
                       exit 0
                     fi;;
           esac
           echo '{"server": "s-1"}'"#,
    ),
    ("boot-server", "exit 76"),
    (
        "configure-server",
        r#"case $input in
             *restless*|*'odd'*'"run":1'*) echo retry_run > "$FLO_OUTCOME_FILE";;
             *faulty*) echo 'bad disk' >&2; exit 1;;
           esac
           echo ok"#,
    ),
    ("release-ip", "echo ok"),
    ("notify", "echo ok"),
    ("destroy-server", "echo ok"),
];

/// A node with a worker for the provisioning chain.
fn provisioning() -> (Logged, CommandWorker) {
    let logged = Logged::start();
    let worker = logged.work("runner", &PROVISIONING);
    logged.create("node-workflow/provision-machine", &[]);
    (logged, worker)
}

/// Resumes the run that waits for the remote system, which has booted the server.
fn resume(logged: &Logged, run_id: &str) {
    let _ = logged.waiting(run_id, "boot-server", "report");
    report(logged, run_id);
}

fn report(logged: &Logged, run_id: &str) {
    let complete = ["workflow", "complete-step", run_id, "boot-server"];
    let output = ["--output", r#"{"console": "c-1"}"#];
    let _ = logged.flo().text(&[&complete[..], &output].concat());
}

fn machine(name: &str) -> Value {
    json!({"machine": name})
}

#[test]
fn a_machine_is_provisioned_after_a_wait_that_the_remote_system_ends() {
    let (logged, mut worker) = provisioning();
    logged.begin("provision-machine", "m-1", &machine("plain"));
    resume(&logged, "m-1");
    let run = logged.ended("m-1");
    let output = json!({"ip": "10.0.0.1", "server": "s-1", "console": "c-1"});
    assert_eq!(run["output"], output, "{run}");
    let expected = [
        ("allocate-ip", machine("plain")),
        (
            "reserve-server",
            json!({"machine": "plain", "ip": "10.0.0.1"}),
        ),
        ("boot-server", json!({"server": "s-1"})),
        (
            "configure-server",
            json!({"machine": "plain", "console": "c-1", "run": 1}),
        ),
    ];
    let expected = expected.map(|(action, input)| (action.to_owned(), input));
    assert_eq!(logged.calls("m-1"), expected);
    assert_eq!(
        run["steps"]["pause"]["output"],
        json!({"waited_ms": 0}),
        "{run}"
    );
    assert!(worker.drain().success());
}

#[test]
fn a_fallback_finds_another_address_and_a_task_puts_itself_back_into_the_queue() {
    let (logged, mut worker) = provisioning();
    logged.begin("provision-machine", "m-1", &machine("crowded"));
    resume(&logged, "m-1");
    let run = logged.ended("m-1");
    assert_eq!(run["output"]["ip"], "10.9.9.9", "{run}");
    assert_eq!(logged.inputs("m-1", "allocate-ip").len(), 3);
    let spare = [json!({"machine": "crowded", "reason": "no address left"})];
    assert_eq!(logged.inputs("m-1", "allocate-spare-ip"), spare);

    logged.begin("provision-machine", "m-2", &machine("busy"));
    resume(&logged, "m-2");
    let run = logged.ended("m-2");
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(logged.inputs("m-2", "reserve-server").len(), 2);
    let exec_after = fs::read_to_string(logged.node.scratch().path("exec-after"));
    let exec_after: u64 = exec_after.expect("a time").trim().parse().expect("in ms");
    let events = logged.history("m-2");
    let mut reserved = events
        .iter()
        .filter(|event| event["type"] == "step_started" && event["step"] == "reserve-server");
    let again = reserved.nth(1).expect("a second visit");
    assert!(again["at_ms"].as_u64() >= Some(exec_after), "{again}");
    assert!(worker.drain().success());
}

/// What the last task of the onerror chain is called with.
fn notice(task: &str, code: &str, message: &str) -> Value {
    let message = format!("step \"{task}\" failed: {message}");
    json!({"task": task, "code": code, "message": message})
}

#[test]
fn a_failed_job_runs_its_onerror_chain_and_a_cancelled_one_its_oncancel_chain() {
    let (logged, mut worker) = provisioning();
    logged.begin("provision-machine", "m-1", &machine("faulty"));
    resume(&logged, "m-1");
    let run = logged.ended("m-1");
    assert_eq!(run["status"], "failed", "{run}");
    let calls = logged.calls("m-1");
    let failed = notice("configure-server", "failure", "bad disk");
    let expected = [
        ("release-ip".to_owned(), json!({"ip": "10.0.0.1"})),
        ("notify".to_owned(), failed),
    ];
    assert_eq!(calls[calls.len() - 2..], expected);

    // The remote system reports a failure.
    logged.begin("provision-machine", "m-2", &machine("plain"));
    let _ = logged.waiting("m-2", "boot-server", "report");
    let complete = ["workflow", "complete-step", "m-2", "boot-server"];
    let failure = ["--failure", "no_boot", "--message", "it does not start"];
    let _ = logged.flo().text(&[&complete[..], &failure].concat());
    assert_eq!(logged.ended("m-2")["status"], "failed");
    let failed = notice("boot-server", "no_boot", "no_boot: it does not start");
    assert_eq!(logged.inputs("m-2", "notify"), [failed]);

    logged.begin("provision-machine", "m-3", &machine("plain"));
    let _ = logged.waiting("m-3", "boot-server", "report");
    let cancel = ["workflow", "cancel", "m-3", "--reason", "ordered twice"];
    let _ = logged.flo().text(&cancel);
    let run = logged.ended("m-3");
    assert_eq!(run["status"], "cancelled", "{run}");
    let expected = [
        ("allocate-ip", machine("plain")),
        (
            "reserve-server",
            json!({"machine": "plain", "ip": "10.0.0.1"}),
        ),
        ("boot-server", json!({"server": "s-1"})),
        (
            "destroy-server",
            json!({"server": "s-1", "reason": "ordered twice"}),
        ),
        ("release-ip", json!({"ip": "10.0.0.1"})),
    ];
    let expected = expected.map(|(action, input)| (action.to_owned(), input));
    assert_eq!(logged.calls("m-3"), expected);
    assert!(worker.drain().success());
}

#[test]
fn a_task_retries_the_whole_job_until_no_attempt_is_left() {
    let (logged, mut worker) = provisioning();
    let next = |run_id: &str| {
        wait_until("the next attempt", TIMEOUT, || {
            let run = logged.flo().json(&["workflow", "status", run_id]);
            let next = run["next_attempt"].as_str();
            next.map(str::to_owned).ok_or(run.to_string())
        })
    };
    logged.begin("provision-machine", "m-1", &machine("odd"));
    resume(&logged, "m-1");
    let second = next("m-1");
    let _ = logged.waiting(&second, "boot-server", "report");
    // The first id stands for all attempts.
    report(&logged, "m-1");
    let run = logged.ended(&second);
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["previous_attempt"], "m-1", "{run}");
    let chain = [
        "allocate-ip",
        "reserve-server",
        "boot-server",
        "configure-server",
    ];
    assert_eq!(logged.actions("m-1"), chain);
    assert_eq!(logged.actions(&second), chain);
    let configured = json!({"machine": "odd", "console": "c-1", "run": 2});
    assert_eq!(logged.inputs(&second, "configure-server"), [configured]);

    logged.begin("provision-machine", "m-2", &machine("restless"));
    resume(&logged, "m-2");
    let second = next("m-2");
    resume(&logged, &second);
    let third = next(&second);
    resume(&logged, &third);
    let run = logged.ended(&third);
    assert_eq!(run["status"], "failed", "{run}");
    assert_eq!(run["next_attempt"], Value::Null, "{run}");
    let [notice] = &logged.inputs(&third, "notify")[..] else {
        panic!("one notice");
    };
    assert_eq!(notice["code"], "retry_exhausted");
    for earlier in ["m-2", &second] {
        assert_eq!(logged.actions(earlier), chain);
    }
    assert!(worker.drain().success());
}

#[test]
fn a_worker_delays_the_task_that_it_puts_back() {
    let logged = Logged::start();
    let register = ["action", "register", "poll-service", "--max-retries", "0"];
    let _ = logged.flo().text(&register);
    logged.create("node-workflow/requeue", &[]);
    let calls = AtomicUsize::new(0);
    let endpoint = logged.node.endpoint();
    let worker = SdkWorker::start(endpoint, "poll-service", move |_| {
        Ok(match calls.fetch_add(1, Ordering::Relaxed) {
            2 => ActionResult::success("ready"),
            delays => ActionResult::named("queue", json!({"delays": delays}))
                .with_delay(Duration::from_millis(50)),
        })
    });
    logged.begin("requeue", "r-1", &json!({}));
    let run = logged.ended("r-1");
    assert_eq!(run["output"], "ready", "{run}");
    let events = logged.history("r-1");
    assert_eq!(count(&events, "step_delayed"), 2, "{events:?}");
    let visits = events
        .iter()
        .filter(|event| event["type"] == "step_started");
    let times: Vec<u64> = visits.filter_map(|event| event["at_ms"].as_u64()).collect();
    assert_eq!(times.len(), 3, "{events:?}");
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] >= 50, "{events:?}");
    }
    worker.drain();
}

/// The tasks that create a gist and star it. The service is not reached at first.
const GIST: [(&str, &str); 2] = [
    (
        "create-gist",
        r#"if mkdir "$folder/gist" 2> /dev/null; then echo 'no route' >&2; exit 1; fi
           echo '{"id": "g-1", "url": "https://example.org/g-1"}'"#,
    ),
    ("star-gist", "echo ok"),
];

#[test]
fn a_gist_is_created_and_starred() {
    let logged = Logged::start();
    let mut worker = logged.work("runner", &GIST);
    logged.create("node-workflow/star-gist", &[]);
    let run = logged.run("star-gist", "g-1", &json!({"files": ["a.js"]}));
    assert_eq!(run["output"], json!({"gist": "g-1"}), "{run}");
    let create = json!({"files": ["a.js"], "description": "A gist"});
    let expected = [
        ("create-gist".to_owned(), create.clone()),
        ("create-gist".to_owned(), create),
        ("star-gist".to_owned(), json!({"id": "g-1"})),
    ];
    assert_eq!(logged.calls("g-1"), expected);

    // exec_after
    let start = ["workflow", "start", "star-gist", "--run-id", "later"];
    let tomorrow = ["--after", "1d"];
    let _ = logged.flo().text(&[&start[..], &tomorrow].concat());
    let run = logged.flo().json(&["workflow", "status", "later"]);
    assert_eq!(run["status"], "pending", "{run}");
    assert_eq!(run["waiting_for"], "start", "{run}");
    let _ = logged.flo().text(&["workflow", "cancel", "later"]);
    assert_eq!(logged.calls("later"), Vec::new());
    let start = ["workflow", "start", "star-gist", "--run-id", "soon"];
    let _ = logged
        .flo()
        .text(&[&start[..], &["--after", "50ms"]].concat());
    let run = logged.ended("soon");
    assert_eq!(run["status"], "completed", "{run}");
    let [started, began] = ["started_at_ms", "began_at_ms"].map(|field| run[field].as_u64());
    assert!(began >= started.map(|ms| ms + 50), "{run}");
    assert!(worker.drain().success());
}

#[test]
fn a_task_of_a_runner_that_dies_goes_to_another_one() {
    let logged = Logged::start();
    let lease = ["--max-retries", "1", "--timeout-ms", "500"];
    for action in ["create-gist", "star-gist"] {
        let _ = logged
            .flo()
            .text(&[&["action", "register", action], &lease[..]].concat());
    }
    logged.create("node-workflow/star-gist", &[]);
    // The command outlives its worker, but not the test.
    let hanging =
        r#"until test -e "$folder/go" || ! test -d "$folder"; do sleep 0.05; done; exit 1"#;
    let mut first = logged.work("first", &[("create-gist", hanging)]);
    logged.begin("star-gist", "g-1", &json!({}));
    logged.called("g-1", "create-gist");
    first.kill();
    let answer = ("create-gist", r#"echo '{"id": "g-2"}'"#);
    let mut second = logged.work("second", &[answer, GIST[1]]);
    let run = logged.ended("g-1");
    assert_eq!(run["output"], json!({"gist": "g-2"}), "{run}");
    let expected = ["create-gist", "create-gist", "star-gist"];
    assert_eq!(logged.actions("g-1"), expected);
    let _ = logged.node.scratch().write("go", "");
    assert!(second.drain().success());
}

#[test]
fn a_job_is_refused_while_one_with_the_same_target_is_open() {
    let (logged, mut worker) = provisioning();
    let flo = logged.flo();
    let start = |workflow: &str, run_id: &str, input: &Value| {
        let input = input.to_string();
        let start = ["workflow", "start", workflow, &input, "--run-id", run_id];
        flo.run(&[&["-o", "json"], &start[..]].concat())
    };
    // The same target with the same parameters.
    let _ = start("provision-machine", "m-1", &machine("a")).success();
    let refusal = start("provision-machine", "m-2", &machine("a")).refusal();
    refusal.expect(3, "target_active");
    let other = json!({"machine": "a", "image": "new"});
    let _ = start("provision-machine", "m-3", &other).success();
    resume(&logged, "m-1");
    assert_eq!(logged.ended("m-1")["status"], "completed");
    let _ = start("provision-machine", "m-2", &machine("a")).success();

    // A backup locks what other jobs would change.
    let script = r#"until test -e "$folder/go"; do sleep 0.05; done; echo ok"#;
    let actions = [("copy-data", script), ("write-data", "echo ok")];
    let mut data = logged.work("data", &actions);
    for name in ["back-up", "modify"] {
        logged.create(&format!("node-workflow/{name}"), &[]);
    }
    let vms = json!({"data": "/vms/1"});
    let _ = start("back-up", "b-1", &vms).success();
    logged.called("b-1", "copy-data");
    let refusal = start("modify", "w-1", &vms).refusal();
    refusal.expect(3, "target_locked");
    let _ = logged.node.scratch().write("go", "");
    assert_eq!(logged.ended("b-1")["status"], "completed");
    let _ = start("modify", "w-1", &vms).success();
    assert_eq!(logged.ended("w-1")["status"], "completed");
    assert_eq!(logged.inputs("w-1", "write-data"), [vms]);
    assert!(data.drain().success());
    assert!(worker.drain().success());
}
