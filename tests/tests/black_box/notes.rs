//! Messages on stderr, next to the result on stdout.

use crate::files::{example, fixture};
use flotilla_tests::{Answer, CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use serde_json::json;
use std::fs::{File, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

#[track_caller]
fn expect_told(answer: &Answer, text: &str) {
    let times = answer.stderr.matches(text).count();
    assert_eq!(times, 1, "{text:?} once on stderr of {}", answer.show());
}

#[track_caller]
fn expect_silence(answer: &Answer) {
    assert_eq!(answer.stderr, "", "{}", answer.show());
}

fn create(flo: &Flo, file: &str) {
    let _ = flo.text(&["workflow", "create", "-f", file]);
}

#[test]
fn a_worker_says_what_it_registers_and_keeps_what_is_there() {
    let node = DevNode::start();
    let flo = node.flo();
    let flags = |id, max_retries| {
        let lease = ["--timeout-ms", "5000", "--retry-delay-ms", "1"];
        [
            &["--worker-id", id, "--max-retries", max_retries],
            &lease[..],
        ]
        .concat()
    };
    let start = |id, max_retries| {
        let failing = [("work", "echo no luck >&2; exit 1")];
        CommandWorker::start_with(&flo, node.scratch(), &flags(id, max_retries), &failing)
    };
    let first = start("first", "0");
    let said = first.output();
    assert!(
        said.contains(r#"registered action "work" (timeout 5s, no retries)"#),
        "{said}"
    );
    let second = start("second", "9");
    let said = second.output();
    assert!(said.contains("is already registered"), "{said}");

    let invoked = flo.run(&["action", "invoke", "work", "--wait"]);
    assert_eq!(invoked.code, 3, "{}", invoked.show());
    let runs = flo.json(&["action", "runs", "work"]);
    assert_eq!(runs["items"][0]["attempts"], 1, "{runs}");
}

#[test]
fn a_worker_without_its_program_ends_before_it_registers_anything() {
    let node = DevNode::start();
    let flo = node.flo();
    let exec = |arguments: &[&str]| {
        flo.refused(&[&["worker", "exec"], arguments].concat())
            .expect(2, "program_missing")
            .says("charge");
    };
    exec(&["charge", "--", "no-such-program"]);
    exec(&["charge", "--", "./no/such/program", "--live"]);
    exec(&["--action", "ship=cat", "--action", "charge=no-such-program"]);
    let actions = flo.json(&["action", "list"]);
    assert_eq!(actions["items"], json!([]), "{actions}");

    let _ = flo.text(&["stream", "create", "orders"]);
    flo.refused(&["worker", "exec", "--stream", "orders", "--", "./no-such"])
        .expect(2, "program_missing")
        .says("consume stream \"orders\"");
    let workers = flo.json(&["worker", "list"]);
    assert_eq!(workers["items"], json!([]), "{workers}");
}

#[test]
fn a_stream_worker_whose_program_vanishes_ends_before_its_records_are_dead() {
    let node = DevNode::start();
    let flo = node.flo();
    let _ = flo.text(&["stream", "create", "orders"]);
    let program = node.scratch().path("bill");
    std::fs::write(&program, "#!/bin/sh\n").expect("room for a line");
    let executable = Permissions::from_mode(0o755);
    std::fs::set_permissions(&program, executable).expect("a file of this test");
    let path = program.to_string_lossy();
    let arguments = ["--worker-id", "w1", "--stream", "orders", "--", &path];
    let mut worker = CommandWorker::start_with(&flo, node.scratch(), &arguments, &[]);
    std::fs::remove_file(&program).expect("a file of this test");
    let _ = flo.text(&["stream", "append", "orders", "1"]);
    assert_eq!(worker.wait().code(), Some(2), "{}", worker.output());
    let said = worker.output();
    assert!(said.contains("consume stream \"orders\""), "{said}");
}

#[test]
fn a_worker_is_refused_an_action_that_the_nodes_run() {
    let node = DevNode::start();
    let flo = node.flo();
    let module = example("actions/ship-order.wat");
    let _ = flo.text(&["action", "register", "ship", "--wasm", &module]);
    flo.refused(&["worker", "exec", "ship", "--", "cat"])
        .expect(3, "action_type_mismatch")
        .says("the nodes run it")
        .hints("flo action register ship");
    let output = flo.json(&["action", "invoke", "ship", "1"]);
    assert_eq!(output["shipped"], true, "{output}");
}

#[test]
fn a_worker_that_is_stopped_says_what_it_waits_for() {
    let node = DevNode::start();
    let flo = node.flo();
    let gate = node.scratch().path("gate");
    let script = format!("until [ -e {} ]; do sleep 0.01; done", gate.display());
    let mut worker = CommandWorker::start(&flo, node.scratch(), "w1", &[("work", &script)]);
    let action_run = flo.text(&["action", "invoke", "work", "--async"]);
    wait_until("a task that runs", TIMEOUT, || {
        let status = flo.json(&["action", "status", &action_run]);
        let is_running = status["status"] == "running";
        is_running.then_some(()).ok_or_else(|| status.to_string())
    });
    worker.begin_drain();
    wait_until("the message about the drain", TIMEOUT, || {
        let said = worker.output();
        let is_told = said.contains("draining: waits for 1 task, at most 30s");
        is_told.then_some(()).ok_or(said)
    });
    let _ = node.scratch().write("gate", "");
    assert!(worker.wait().success());
    let said = worker.output();
    assert!(said.contains("drained: 1 task ended"), "{said}");
}

#[test]
fn a_worker_that_is_stopped_again_ends_immediately_with_its_programs_and_names_what_it_gives_up() {
    let node = DevNode::start();
    let flo = node.flo();
    let pipe = node.scratch().path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|made| made.success()));
    let script = format!("exec 3>{}; echo up >&3; sleep 3600", pipe.display());
    let actions = [("work", script.as_str())];
    let mut worker = CommandWorker::start(&flo, node.scratch(), "w1", &actions);
    let action_run = flo.text(&["action", "invoke", "work", "--async"]);
    let (up, is_up) = mpsc::sync_channel(1);
    let reading = thread::spawn(move || {
        let mut pipe = File::open(&pipe)?;
        pipe.read_exact(&mut [0; 3])?;
        up.send(()).expect("the test waits");
        // Ends when every writer has ended: the program and what it started.
        pipe.read_to_end(&mut Vec::new())
    });
    is_up.recv_timeout(TIMEOUT).expect("the program runs");
    worker.begin_drain();
    wait_until("the message about the drain", TIMEOUT, || {
        let said = worker.output();
        let is_told = said.contains("draining: waits for 1 task");
        is_told.then_some(()).ok_or(said)
    });
    assert_eq!(worker.drain().code(), Some(4));
    let said = worker.output();
    assert!(
        said.contains(&format!("it abandons 1 task: work ({action_run}")),
        "{said}"
    );
    wait_until("the program's end", TIMEOUT, || {
        let has_ended = reading.is_finished();
        has_ended
            .then_some(())
            .ok_or_else(|| "it still runs".to_owned())
    });
}

#[test]
fn a_worker_says_once_that_the_cluster_is_away_and_once_that_it_is_back() {
    let mut node = DevNode::start_with(&["--data-dir", "data"]);
    let worker = CommandWorker::start(&node.flo(), node.scratch(), "w1", &[("work", "cat")]);
    let said_of = |text: &'static str| {
        wait_until(text, TIMEOUT, || {
            let said = worker.output();
            said.contains(text).then_some(()).ok_or(said)
        });
    };
    node.process().kill();
    said_of("the connection to the cluster is lost");
    node.restart();
    said_of("the cluster is back");
    let said = worker.output();
    assert_eq!(
        said.matches("connection to the cluster is lost").count(),
        1,
        "{said}"
    );
    assert_eq!(said.matches("the cluster is back").count(), 1, "{said}");
}

#[test]
fn usage_shows_no_flag_as_required_because_its_variable_is_set() {
    let flo = Flo::at("127.0.0.1:1");
    let answer = flo.run(&["workflow", "start"]);
    assert_eq!(answer.code, 2, "{}", answer.show());
    expect_told(&answer, "Usage: flo workflow start");
    assert!(!answer.stderr.contains("--endpoint"), "{}", answer.show());
}

#[test]
fn a_node_whose_port_is_taken_names_no_endpoint() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let flo = Flo::at("127.0.0.1:1");
    let answer = flo.run(&["dev", "--ephemeral", "--port", &port]);
    assert_eq!(answer.code, 3, "{}", answer.show());
    assert_eq!(answer.stdout, "", "{}", answer.show());
}

#[test]
fn a_query_for_an_attribute_that_no_run_has_warns_of_it() {
    let node = DevNode::start();
    let flo = node.flo();
    create(&flo, &fixture("passing.yaml"));
    let _ = flo.text(&["workflow", "start", "passing", r#"{"total": 5}"#]);
    let found = |condition| flo.run(&["workflow", "runs", "--where", condition]);
    expect_told(
        &found("totl > 1 and total > 1"),
        "no run has the search attribute \"totl\"",
    );
    expect_silence(&found("total > 9"));
}

#[test]
fn a_worker_whose_tasks_outlast_its_drain_names_them_and_fails() {
    let node = DevNode::start();
    let flo = node.flo();
    let flags = ["--worker-id", "w1", "--drain-grace-ms", "1"];
    let endless = [("work", "sleep 3600")];
    let mut worker = CommandWorker::start_with(&flo, node.scratch(), &flags, &endless);
    let action_run = flo.text(&["action", "invoke", "work", "--async"]);
    wait_until("a worker at work", TIMEOUT, || {
        let listed = flo.json(&["worker", "info", "w1"]);
        let is_busy = listed["current_load"] == 1 && listed["status"] == "active";
        is_busy.then_some(()).ok_or_else(|| listed.to_string())
    });
    assert_eq!(worker.drain().code(), Some(4));
    let said = worker.output();
    assert!(
        said.contains(&format!("1 task did not: work ({action_run}")),
        "{said}"
    );
    let status = flo.json(&["action", "status", &action_run]);
    assert_eq!(status["status"], "pending", "{status}");
}

#[test]
fn a_start_says_when_the_run_was_there_before() {
    let node = DevNode::start();
    let flo = node.flo();
    create(&flo, &fixture("parked.yaml"));
    let start = ["workflow", "start", "parked", "--idempotency-key", "k"];
    let first = flo.run(&start);
    expect_silence(&first);
    let run_id = first.success();
    let again = flo.run(&start);
    let run = run_id.trim();
    expect_told(
        &again,
        &format!("run {run} already exists for this idempotency key\n"),
    );
    assert!(!again.stderr.contains("differs"), "{}", again.show());
    assert_eq!(again.success(), run_id);
    let other = flo.run(&[&start[..], &["7"]].concat());
    expect_told(&other, "original input, which differs");
    assert_eq!(other.success(), run_id);
    let in_json = [&["-o", "json"], &start[..]].concat();
    expect_silence(&flo.run(&in_json));
}

#[test]
fn a_waiting_start_tells_the_run_and_can_be_bounded() {
    let node = DevNode::start();
    let flo = node.flo();
    create(&flo, &fixture("parked.yaml"));
    let bounded = [
        "workflow",
        "start",
        "parked",
        "--wait",
        "--wait-timeout",
        "1ms",
        "--idempotency-key",
        "k",
    ];
    let answer = flo.run(&bounded);
    assert_eq!(answer.code, 4, "{}", answer.show());
    let run_id = flo.text(&["workflow", "start", "parked", "--idempotency-key", "k"]);
    expect_told(&answer, &format!("run {run_id} started\n"));
    expect_told(&answer, "but it has not ended");
    expect_told(&answer, &format!("flo workflow history {run_id} --follow"));
    flo.refused(&bounded).expect(4, "wait_timeout");

    let _ = flo.text(&["workflow", "signal", &run_id, "--type", "go", "7"]);
    let line = [
        "workflow",
        "start",
        "parked",
        "--wait",
        "--idempotency-key",
        "k",
    ];
    let ended = flo.run(&line);
    expect_told(&ended, "already exists");
    assert_eq!(ended.json(), json!(7));
}

#[test]
fn a_waiting_start_tells_why_the_run_failed() {
    let node = DevNode::start();
    let flo = node.flo();
    create(&flo, &fixture("one-step.yaml"));
    let failing = [("work", "echo out of stock >&2; exit 65")];
    let _worker = CommandWorker::start(&flo, node.scratch(), "w1", &failing);
    let answer = flo.run(&["workflow", "start", "one-step", "--wait"]);
    assert_eq!(answer.code, 3, "{}", answer.show());
    assert_eq!(answer.stdout, "");
    expect_told(&answer, "out of stock");
}

#[test]
fn a_create_says_what_is_new_and_tells_each_error_once() {
    let node = DevNode::start();
    let flo = node.flo();
    let source = std::fs::read_to_string(fixture("parked.yaml")).expect("a fixture");
    let file = node.scratch().write("parked.yaml", &source);
    let line = ["workflow", "create", "-f", &file];
    expect_silence(&flo.run(&line));
    expect_silence(&flo.run(&line));
    let _ = node
        .scratch()
        .write("parked.yaml", source + "description: \"new\"\n");
    let changed = flo.run(&line);
    expect_told(&changed, "has new content: revision 2\n");

    let _ = node.scratch().write(
        "parked.yaml",
        "kind: Workflow\nname: parked\nversion: \"1\"\nstart: 3\n",
    );
    let refused = flo.run(&line);
    assert_eq!(refused.code, 3, "{}", refused.show());
    expect_told(&refused, "E100");
    expect_told(&refused, "it has 1 error");
    flo.refused(&line)
        .expect(3, "definition_invalid")
        .says("E100");
}
