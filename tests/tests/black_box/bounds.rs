//! Definitions and payloads at their bounds, against three nodes: all stay up and agree (design rule 13).

use flotilla_tests::{Cluster, CommandWorker, TIMEOUT, wait_until};
use std::fmt::Write as _;
use std::fs;
use std::thread;

/// The maximum that one entry may write to the state, in bytes.
const ENTRY_WRITTEN_BYTES_MAX: f64 = 16_777_216.0;

/// A file with `{"x":"…"}` of about this many bytes, as an argument for an input.
fn input(cluster: &Cluster, bytes: usize) -> String {
    let text = format!("{{\"x\":\"{}\"}}", "x".repeat(bytes));
    format!("@{}", cluster.scratch().write("input.json", text))
}

fn create(cluster: &Cluster, text: &str) {
    let file = cluster.scratch().write("workflow.yaml", text);
    let _ = cluster.flo().text(&["workflow", "create", "-f", &file]);
}

/// The definition is refused with this message.
fn refuse(cluster: &Cluster, text: &str, words: &str) {
    let file = cluster.scratch().write("workflow.yaml", text);
    let refusal = cluster.flo().refused(&["workflow", "create", "-f", &file]);
    refusal.says(words);
}

/// Waits until the run has ended, and returns its detail.
fn end_of(cluster: &Cluster, run: &str) -> String {
    wait_until("the run's end", TIMEOUT, || {
        let run = cluster.flo().json(&["workflow", "status", run]);
        match run["completed_at_ms"].is_null() {
            true => Err(format!("it is {}", run["status"])),
            false => Ok(run["detail"].as_str().unwrap_or_default().to_owned()),
        }
    })
}

/// All nodes serve, have the same state, and no entry exceeded its limit. Prints what the largest entry cost.
fn judge(cluster: &mut Cluster) {
    cluster.await_health();
    let _ = cluster.agreement();
    for node in cluster.nodes() {
        assert!(node.is_running(), "node {} has ended", node.id());
        let written = node.metric("flotilla_entry_written_max_bytes");
        let applied = node.metric("flotilla_entry_apply_duration_max_seconds");
        println!(
            "node {}: at most {written} bytes and {applied} s for an entry",
            node.id()
        );
        assert!(
            written <= ENTRY_WRITTEN_BYTES_MAX,
            "an entry wrote {written} bytes at node {}",
            node.id()
        );
    }
    // The log can be applied again.
    let follower = cluster.followers()[0];
    cluster.kill(follower);
    cluster.restart(follower);
    cluster.await_health();
    let _ = cluster.agreement();
}

#[test]
fn large_search_attributes_are_refused_or_absent_and_the_nodes_stay_up() {
    let mut cluster = Cluster::start();
    let definition = |count: usize| {
        let mut text =
            String::from("kind: Workflow\nname: wide\nversion: \"1\"\nsearchAttributes:\n");
        for number in 0..count {
            writeln!(text, "  - {{name: a{number}, from: input.x}}").expect("a String");
        }
        text.push_str(
            "start: {waitForSignal: {type: go}, transitions: {success: flo.Completed}}\n",
        );
        text
    };
    refuse(
        &cluster,
        &definition(300),
        "expected at most 64 items in searchAttributes, but it has 300",
    );
    create(&cluster, &definition(64));
    let input = input(&cluster, 900_000);
    let _ = cluster.flo().text(&["workflow", "start", "wide", &input]);
    let run = cluster.flo().json(&["workflow", "status", "wfrun-1"]);
    let detail = run["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("too large"), "{detail}");
    let _ = cluster
        .flo()
        .text(&["workflow", "signal", "wfrun-1", "--type", "go"]);
    assert!(end_of(&cluster, "wfrun-1").contains("too large"));
    judge(&mut cluster);
}

#[test]
fn a_loop_that_copies_its_input_and_a_signal_ends_and_the_nodes_stay_up() {
    const RUNS: usize = 6;
    let mut cluster = Cluster::start();
    create(
        &cluster,
        "kind: Workflow\nname: hammer\nversion: \"1\"\nloopWarnAfter: 1000\n\
         start: {waitForSignal: {type: go}, transitions: {success: hammer}}\n\
         steps: {hammer: {run: \"@actions/gone\", \
         inputMapping: {all: $.input, signal: $.steps.start.output}, \
         transitions: {success: flo.Completed, target_not_found: hammer, failure: flo.Failed}}}\n",
    );
    let input = input(&cluster, 150_000);
    for _ in 0..RUNS {
        let _ = cluster.flo().text(&["workflow", "start", "hammer", &input]);
    }
    thread::scope(|scope| {
        for number in 1..=RUNS {
            let flo = cluster.flo();
            let input = &input;
            let run = format!("wfrun-{number}");
            scope.spawn(move || flo.text(&["workflow", "signal", &run, "--type", "go", input]));
        }
    });
    for number in 1..=RUNS {
        let detail = end_of(&cluster, &format!("wfrun-{number}"));
        assert_eq!(detail, "max step limit reached: 256 steps without a wait");
    }
    judge(&mut cluster);
}

#[test]
fn small_completions_with_large_next_steps_end_and_the_nodes_stay_up() {
    const RUNS: usize = 40;
    let mut cluster = Cluster::start();
    // Each task waits for a file, so that all of them are completed together.
    let folder = cluster.scratch().path("");
    let scratch = folder.display();
    let script = format!(
        "touch {scratch}/taken-$$; until [ -e {scratch}/go ]; do sleep 0.05; done; echo {{}}"
    );
    let flags = ["--worker-id", "w", "--concurrency", "40"];
    let _worker = CommandWorker::start_with(
        &cluster.flo(),
        cluster.scratch(),
        &flags,
        &[("check", &script)],
    );
    create(
        &cluster,
        "kind: Workflow\nname: fan\nversion: \"1\"\n\
         start: {waitForSignal: {type: order}, transitions: {success: check}}\nsteps:\n  \
         check: {run: \"@actions/check\", inputMapping: {n: 1}, \
         transitions: {success: charge, failure: flo.Failed}}\n  \
         charge: {run: \"@actions/gone\", inputMapping: {order: $.steps.start.output}, \
         transitions: {target_not_found: flo.Completed, failure: flo.Failed}}\n",
    );
    let order = input(&cluster, 900_000);
    for number in 1..=RUNS {
        let run = format!("wfrun-{number}");
        let _ = cluster.flo().text(&["workflow", "start", "fan"]);
        let signal = ["workflow", "signal", &run, "--type", "order", &order];
        let _ = cluster.flo().text(&signal);
    }
    wait_until("all tasks", TIMEOUT, || {
        let files = fs::read_dir(&folder).expect("the folder is there");
        let names = files.map(|file| file.expect("a file").file_name());
        let taken = names.filter(|name| name.to_string_lossy().starts_with("taken-"));
        match taken.count() {
            RUNS => Ok(()),
            taken => Err(format!("{taken} are taken")),
        }
    });
    let _ = cluster.scratch().write("go", String::new());
    for number in 1..=RUNS {
        let _ = end_of(&cluster, &format!("wfrun-{number}"));
    }
    judge(&mut cluster);
}

#[test]
fn a_mapping_of_many_paths_into_a_large_payload_is_applied_at_once() {
    let mut cluster = Cluster::start();
    let mapping = |count: usize| {
        let mut text = String::from(
            "kind: Workflow\nname: paths\nversion: \"1\"\nloopWarnAfter: 1000\nstart:\n  run: \"@actions/gone\"\n  inputMapping:\n",
        );
        for number in 0..count {
            writeln!(text, "    f{number}: $.input.y{number}").expect("a String");
        }
        text.push_str("  transitions: {target_not_found: start, failure: flo.Failed}\n");
        text
    };
    refuse(&cluster, &mapping(2_000), "expected at most 256 paths");
    create(&cluster, &mapping(256));
    let input = input(&cluster, 900_000);
    let _ = cluster.flo().text(&["workflow", "start", "paths", &input]);
    assert_eq!(
        end_of(&cluster, "wfrun-1"),
        "max step limit reached: 256 steps without a wait"
    );
    judge(&mut cluster);
}
