//! Workers and their tasks from the command line (A10), through any node (A22).

use flotilla_tests::{Cluster, CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::fs;

/// Waits until the document matches, and returns it.
fn await_json(flo: &Flo, words: &[&str], is_reached: impl Fn(&Value) -> bool) -> Value {
    wait_until(&words.join(" "), TIMEOUT, || {
        let document = flo.json(words);
        match is_reached(&document) {
            true => Ok(document),
            false => Err(document.to_string()),
        }
    })
}

/// A command that runs until the file `gate` exists.
fn gated(node: &DevNode) -> String {
    let gate = node.scratch().path("gate");
    format!("until [ -e {} ]; do sleep 0.01; done", gate.display())
}

#[test]
fn a_worker_drained_from_the_command_line_ends_its_task_takes_no_other_and_goes() {
    let node = DevNode::start();
    let flo = node.flo();
    let script = gated(&node);
    let mut worker = CommandWorker::start(&flo, node.scratch(), "w1", &[("work", &script)]);
    let first = flo.text(&["action", "invoke", "work", "--async"]);
    let is = |status: &'static str| move |run: &Value| run["status"] == status;
    let _ = await_json(&flo, &["action", "status", &first], is("running"));
    let _ = flo.text(&["worker", "drain", "w1"]);
    let info = flo.json(&["worker", "info", "w1"]);
    assert_eq!(info["status"], "draining", "{info}");
    let second = flo.text(&["action", "invoke", "work", "--async"]);
    let _ = node.scratch().write("gate", "");
    assert!(worker.wait().success());
    let _ = await_json(&flo, &["action", "status", &first], is("completed"));
    let left = flo.json(&["action", "status", &second]);
    assert_eq!(left["status"], "pending", "{left}");
    flo.refused(&["worker", "info", "w1"])
        .expect(1, "worker_not_found");
    flo.refused(&["worker", "drain", "w1"])
        .expect(1, "worker_not_found");
}

#[test]
fn a_worker_that_drains_of_its_own_accord_shows_it() {
    let node = DevNode::start();
    let flo = node.flo();
    let script = gated(&node);
    let mut worker = CommandWorker::start(&flo, node.scratch(), "w1", &[("work", &script)]);
    let run = flo.text(&["action", "invoke", "work", "--async"]);
    let status = ["action", "status", &run];
    let _ = await_json(&flo, &status, |run| run["status"] == "running");
    worker.begin_drain();
    let info = ["worker", "info", "w1"];
    let _ = await_json(&flo, &info, |info| info["status"] == "draining");
    let _ = node.scratch().write("gate", "");
    assert!(worker.wait().success());
    let _ = await_json(&flo, &status, |run| run["status"] == "completed");
}

#[test]
fn the_registry_survives_a_killed_leader() {
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    let mut worker = CommandWorker::start(&flo, cluster.scratch(), "w1", &[("work", "cat")]);
    let invoke = ["action", "invoke", "work", "7", "--wait"];
    assert_eq!(flo.run(&invoke).json(), json!(7));
    let info = ["worker", "info", "w1"];
    let before = flo.json(&info);
    assert_eq!(before["tasks_completed"], json!(1), "{before}");
    let leader = cluster.leader();
    cluster.kill(leader);
    // Whatever happens to the call, its task runs in the end.
    let key = [
        "action",
        "invoke",
        "work",
        "8",
        "--async",
        "--idempotency-key",
        "k",
    ];
    wait_until("a new leader", TIMEOUT, || {
        let answer = flo.run(&key);
        match answer.code {
            0 => Ok(()),
            _ => Err(answer.show()),
        }
    });
    let after = await_json(&flo, &info, |info| info["tasks_completed"] == 2);
    assert_eq!(after["registered_at_ms"], before["registered_at_ms"]);
    assert_eq!(after["processes"][0]["run_count"], json!(2), "{after}");
    assert!(worker.drain().success());
    cluster.restart(leader);
    let _ = cluster.agreement();
}

#[test]
fn urgent_tasks_go_first_and_delayed_ones_wait() {
    let node = DevNode::start();
    let flo = node.flo();
    let _ = flo.text(&["action", "register", "work"]);
    let invoke = |input, flags: &[&str]| {
        let words = ["action", "invoke", "work", input, "--async"];
        flo.text(&[&words, flags].concat())
    };
    let delayed = invoke("0", &["--delay-ms", "600000", "--priority", "255"]);
    let last = invoke("3", &["--priority", "0"]);
    let _ = invoke("2", &[]);
    let _ = invoke("1", &["--priority", "200"]);
    let seen = node.scratch().path("seen");
    let script = format!("cat >> {0}; echo >> {0}", seen.display());
    let flags = ["--worker-id", "w1", "--concurrency", "1"];
    let actions = [("work", script.as_str())];
    let mut worker = CommandWorker::start_with(&flo, node.scratch(), &flags, &actions);
    let is_done = |run: &Value| run["status"] == "completed";
    let run = await_json(&flo, &["action", "status", &last], is_done);
    assert_eq!(run["priority"], json!(0), "{run}");
    let seen = fs::read_to_string(seen).expect("the program wrote it");
    assert_eq!(seen, "1\n2\n3\n");
    let waiting = flo.json(&["action", "status", &delayed]);
    assert_eq!(waiting["status"], "pending", "{waiting}");
    assert!(worker.drain().success());
}
