//! `flo bench` measures what it claims, verifies results, and leaves the cluster as its help says.

use flotilla_tests::{Cluster, CommandWorker, DevNode, Flo, Shell, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::fs;

/// Runs a load with this many operations, and returns its report.
fn measure(flo: &Flo, load: &[&str], count: u64) -> Value {
    let count_text = count.to_string();
    let pace = ["--count", &count_text, "--clients", "8", "--warm-up", "0"];
    let report = flo.json(&[&["bench"], load, &pace].concat());
    let expected = json!({"completed": count, "errors": 0, "error": null, "count": count});
    for (field, value) in expected.as_object().expect("it is one") {
        assert_eq!(&report[field], value, "{field} in {report}");
    }
    for field in ["runs_per_s", "p50_ms", "p99_ms", "p999_ms", "max_ms"] {
        let figure = report[field].as_f64();
        assert!(figure.is_some_and(|figure| figure > 0.0), "{report}");
    }
    report
}

/// How many runs of a workflow have a status: at most a thousand.
fn runs(flo: &Flo, workflow: &str, status: &str) -> usize {
    let list = [
        "workflow",
        "runs",
        "--workflow",
        workflow,
        "--status",
        status,
    ];
    let page = flo.json(&[&list[..], &["--limit", "1000"]].concat());
    page["items"].as_array().expect("a list").len()
}

/// How many operations of a stage were measured.
fn stage(report: &Value, name: &str) -> u64 {
    let stages = report["stages"].as_array().expect("a list");
    let stage = stages.iter().find(|stage| stage["name"] == name);
    stage.map_or(0, |stage| stage["count"].as_u64().expect("a count"))
}

#[test]
fn a_start_is_of_a_run_that_completes_by_itself() {
    let node = DevNode::start();
    let flo = node.flo();
    let report = measure(&flo, &["start", "--payload", "1000"], 200);
    assert_eq!(runs(&flo, "flo-bench-start", "completed"), 200);
    assert_eq!(report["payload_bytes"], 1_000);
    let [member] = report["nodes"].as_array().expect("a list").as_slice() else {
        panic!("one node: {report}");
    };
    let whole = (&member["node_id"], &member["leader"], &member["responded"]);
    assert_eq!(whole, (&json!(1), &json!(true), &json!(true)));
    let written = member["log_bytes_per_run"].as_f64();
    assert!(written.is_some_and(|bytes| bytes > 1_000.0), "{member}");
    for field in ["commands_per_entry", "entries_per_s", "fsyncs_per_s"] {
        assert!(report[field].as_f64() > Some(0.0), "{field} in {report}");
    }
}

#[test]
fn every_step_is_carried_out_and_its_transition_is_measured() {
    let node = DevNode::start();
    let flo = node.flo();
    let report = measure(&flo, &["steps", "--steps", "3", "--workers", "2"], 60);
    assert_eq!(stage(&report, "transition"), 120);
    assert_eq!(report["steps_per_run"], 3);
    assert_eq!(runs(&flo, "flo-bench-steps-3", "completed"), 60);
    let report = measure(&flo, &["steps", "--steps", "1", "--payload", "2000"], 20);
    assert_eq!(stage(&report, "transition"), 0);
    let workers = flo.json(&["worker", "list"]);
    assert_eq!(workers["items"], json!([]), "they have left");
}

#[test]
fn every_branch_and_every_item_is_counted() {
    let node = DevNode::start();
    let flo = node.flo();
    let report = measure(&flo, &["parallel", "--branches", "4"], 20);
    assert_eq!(report["steps_per_run"], 4);
    assert_eq!(runs(&flo, "flo-bench-parallel-4", "completed"), 20);
    let loops = ["foreach", "--branches", "3", "--items", "4", "--steps", "2"];
    let report = measure(&flo, &loops, 10);
    assert_eq!(report["steps_per_run"], 24);
    assert_eq!(stage(&report, "transition"), 120, "one for each item");
    assert_eq!(runs(&flo, "flo-bench-foreach-3x4x2", "completed"), 10);
}

#[test]
fn at_a_rate_as_many_begin_as_it_says() {
    let node = DevNode::start();
    let flo = node.flo();
    let report = measure(&flo, &["steps", "--rate", "100"], 50);
    assert_eq!(report["rate"], 100);
    // 50 of them take half a second, on any machine.
    assert!(report["runs_per_s"].as_f64() < Some(105.0), "{report}");
}

#[test]
fn signals_records_modules_and_reads_are_verified() {
    let node = DevNode::start();
    let flo = node.flo();
    let report = measure(&flo, &["signal"], 50);
    assert_eq!(stage(&report, "signal to completion"), 50);
    assert_eq!(runs(&flo, "flo-bench-signal", "completed"), 50);

    let report = measure(&flo, &["stream", "--payload", "100"], 50);
    assert_eq!(stage(&report, "acknowledged append"), 50);
    assert_eq!(stage(&report, "append to task"), 50);
    assert_eq!(runs(&flo, "flo-bench-stream", "completed"), 50);

    measure(&flo, &["wasm", "--payload", "100000"], 20);
    assert_eq!(runs(&flo, "flo-bench-wasm", "completed"), 20);

    measure(&flo, &["read", "--runs", "30"], 100);
    measure(&flo, &["read", "--runs", "30", "--stale"], 100);
    assert_eq!(runs(&flo, "flo-bench-start", "completed"), 60);
}

#[test]
fn timers_fall_due_together_and_all_of_them_fire() {
    let node = DevNode::start();
    let flo = node.flo();
    let report = flo.json(&["bench", "timers", "--runs", "300", "--due-in", "3"]);
    assert_eq!(
        (&report["completed"], &report["errors"]),
        (&json!(300), &json!(0))
    );
    assert_eq!(stage(&report, "due to end, as clients saw it"), 300);
    assert_eq!(runs(&flo, "flo-bench-timers", "completed"), 300);
}

#[test]
fn parked_runs_are_filled_up_and_ended() {
    let node = DevNode::start();
    let flo = node.flo();
    let park = |runs: &str| {
        let report = flo.json(&["bench", "parked", "--runs", runs]);
        (report["completed"].clone(), report["open_runs"].clone())
    };
    assert_eq!(park("150"), (json!(150), json!(150)));
    assert_eq!(park("200"), (json!(50), json!(200)));
    assert_eq!(park("100"), (json!(0), json!(200)));
    assert_eq!(runs(&flo, "flo-bench-parked", "waiting"), 200);
    assert_eq!(
        flo.json(&["bench", "parked", "--end"]),
        json!({"ended": 200})
    );
    assert_eq!(runs(&flo, "flo-bench-parked", "waiting"), 0);
}

#[test]
fn a_bench_that_is_interrupted_still_reports() {
    let node = DevNode::start();
    let load = "flo -o json bench start --seconds 3600 --warm-up 0";
    let shell = Shell::new(&node);
    let mut bench = shell.start("bench", &format!("sh -c 'echo ready; exec {load}'"));
    wait_until("a run to complete", TIMEOUT, || {
        match runs(&node.flo(), "flo-bench-start", "completed") {
            0 => Err("no run has completed".to_owned()),
            _ => Ok(()),
        }
    });
    assert!(bench.terminate().success(), "{}", bench.output());
    let output = bench.output();
    let report = output.lines().last().expect("a report");
    let report: Value = serde_json::from_str(report).expect("a report");
    assert!(report["completed"].as_u64() > Some(0), "{report}");
    assert_eq!(report["errors"], 0);
}

#[test]
fn a_bench_that_is_stopped_before_it_has_measured_fails() {
    let node = DevNode::start();
    let shell = Shell::new(&node);
    for (workload, begun) in [
        (
            "start --seconds 60 --warm-up 600",
            ("flo-bench-start", "completed"),
        ),
        (
            "timers --runs 10 --due-in 600",
            ("flo-bench-timers", "waiting"),
        ),
    ] {
        let load = format!("sh -c 'echo ready; exec flo -o json bench {workload}'");
        let mut bench = shell.start("bench", &load);
        wait_until("runs to begin", TIMEOUT, || {
            match runs(&node.flo(), begun.0, begun.1) {
                0..10 => Err("there are too few".to_owned()),
                _ => Ok(()),
            }
        });
        assert!(!bench.terminate().success(), "{}", bench.output());
        let output = bench.output();
        assert!(output.contains("bench_interrupted"), "{output}");
    }
}

#[test]
fn the_report_lists_each_node_and_shows_which_one_is_down() {
    let mut cluster = Cluster::start();
    let follower = cluster.followers()[0];
    cluster.kill(follower);
    let report = measure(&cluster.flo(), &["start"], 50);
    let nodes = report["nodes"].as_array().expect("a list");
    let answered = nodes.iter().filter(|node| node["responded"] == true);
    let answered: Vec<&Value> = answered.collect();
    assert_eq!((nodes.len(), answered.len()), (3, 2), "{report}");
    let led = answered.iter().filter(|node| node["leader"] == true);
    assert_eq!(led.count(), 1, "{report}");
    for node in answered {
        assert!(node["fsyncs_per_s"].as_f64() > Some(0.0), "{report}");
    }
    let text = cluster.flo().text(&["bench", "start", "--count", "10"]);
    assert!(text.contains("did not answer"), "{text}");
}

#[test]
fn figures_are_drawn_of_a_bench_and_of_saved_reports() {
    let node = DevNode::start();
    let (flo, scratch) = (node.flo(), node.scratch());
    let path = |name: &str| scratch.path(name).display().to_string();
    let mut reports = Vec::new();
    for clients in ["1", "4"] {
        let (figure, name) = (path(&format!("{clients}.svg")), format!("{clients}.json"));
        let load = ["bench", "start", "--count", "50", "--clients", clients];
        let drawn = ["--plot", &figure, "--label", "kind=small"];
        let report = flo.json(&[&load[..], &drawn].concat());
        assert_eq!(report["labels"], json!({"kind": "small"}));
        reports.push(scratch.write(&name, report.to_string()));
        let svg = fs::read_to_string(&figure).expect("it is drawn");
        assert!(svg.contains("acknowledged start"), "{svg}");
    }
    let out = path("series.svg");
    let saved: Vec<&str> = reports.iter().map(String::as_str).collect();
    let _ = flo.text(
        &[
            &["bench", "plot", "--x", "clients", "--out", &out],
            &saved[..],
        ]
        .concat(),
    );
    let svg = fs::read_to_string(&out).expect("it is drawn");
    assert!(svg.contains(">clients<") && svg.contains("p99"), "{svg}");

    let missing = ["bench", "plot", saved[0], "--x", "open_runs", "--out", &out];
    flo.refused(&missing).expect(2, "usage").hints("--label");
    flo.refused(&["bench", "plot", &out, "--out", &out])
        .expect(2, "json_invalid")
        .hints("-o json");
}

#[test]
fn bad_input_is_refused_before_anything_is_measured() {
    let node = DevNode::start();
    let flo = node.flo();
    for wrong in [
        &["start", "--rate", "0"][..],
        &["start", "--clients", "5000"],
        &["start", "--seconds", "0"],
        &["start", "--count", "5", "--seconds", "5"],
        &["steps", "--steps", "0"],
        &["start", "--payload", "1000001"],
        &["parked", "--end", "--runs", "5"],
        &["read", "--label", "x"],
        &["plot", "--out", "a.svg"],
    ] {
        flo.refused(&[&["bench"], wrong].concat())
            .expect(2, "usage")
            .hints("--help");
    }
    for flag in [
        "--rate",
        "--clients",
        "--connections",
        "--seconds",
        "--count",
        "--warm-up",
    ] {
        flo.refused(&["bench", "start", flag, "-5"])
            .expect(2, "usage")
            .says(&format!("invalid value '-5' for '{flag}"));
    }
    let labels = ["--label", "a=1", "--label", "a=2"];
    flo.refused(&[&["bench", "start"], &labels[..]].concat())
        .expect(2, "usage")
        .says("--label a=… is given twice");
    flo.refused(&["bench", "start", "--plot", "figure.png"])
        .expect(2, "usage")
        .says(".svg")
        .hints("SVG");
    flo.refused(&["bench", "start", "--plot", "no/such/folder/figure.svg"])
        .expect(6, "file_unwritable")
        .hints("directory");
    let workflows = flo.json(&["workflow", "list"]);
    assert_eq!(workflows["items"], json!([]));
}

#[test]
fn a_bench_without_workers_says_so_instead_of_starting_runs() {
    let node = DevNode::start();
    let flo = node.flo();
    let unserved = ["bench", "steps", "--workers", "0", "--timeout", "1s"];
    flo.refused(&unserved)
        .expect(4, "no_worker")
        .says("flo-bench-step")
        .hints("--workers 1");
    assert_eq!(flo.json(&["workflow", "runs"])["items"], json!([]));
}

#[test]
fn a_bench_of_which_everything_failed_fails_and_says_why() {
    let node = DevNode::start();
    let flo = node.flo();
    let flags = ["--worker-id", "w1", "--drain-grace-ms", "1"];
    let endless = [("flo-bench-step", "sleep 3600")];
    let mut worker = CommandWorker::start_with(&flo, node.scratch(), &flags, &endless);
    let hopeless = [
        "bench",
        "steps",
        "--workers",
        "0",
        "--count",
        "2",
        "--warm-up",
        "0",
    ];
    let answer = flo.run(&[&["-o", "json", "--timeout", "1s"], &hopeless[..]].concat());
    let report: Value = answer.decode_stdout().expect("a report");
    assert_eq!(
        (&report["completed"], &report["errors"]),
        (&json!(0), &json!(2))
    );
    answer
        .refusal()
        .expect(4, "wait_timeout")
        .hints("the run continues");
    assert!(!worker.drain().success(), "its tasks continue");
    Flo::at("127.0.0.1:1")
        .refused(&["bench", "start", "--seconds", "1"])
        .expect(5, "connection_failed");
}
