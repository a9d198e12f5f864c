//! Steps as spans: one trace over the nodes and the worker that took part.

use crate::collector::Collector;
use crate::files::{example, fixture};
use flotilla_engine::ENGINE_VERSION;
use flotilla_tests::{Cluster, CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

/// Waits until the node keeps traces: a cluster agrees on that soon after it starts.
fn await_agreement(flo: &Flo) {
    wait_until("the newest engine version", TIMEOUT, || {
        let status = flo.text(&["cluster", "status"]);
        let is_newest = status.contains(&format!("engine version {ENGINE_VERSION}"));
        is_newest.then_some(()).ok_or(status)
    });
}

#[test]
fn a_callers_trace_continues_over_two_nodes_and_a_worker() {
    let collector = Collector::start();
    let to = ["--otlp-endpoint", collector.endpoint()];
    let cluster = Cluster::secured_with(&to);
    let (leader, follower) = (cluster.leader(), cluster.followers()[0]);
    let flo = cluster.flo_at(follower);
    await_agreement(&flo);
    let flags = [&["--worker-id", "w1"], &to[..]].concat();
    let script = "printf %s $TRACEPARENT";
    let _worker = CommandWorker::start_with(&flo, cluster.scratch(), &flags, &[("work", script)]);
    let definition = fixture("one-step.yaml");
    let _ = flo.text(&["workflow", "create", "-f", &definition]);
    let start = [
        "workflow", "start", "one-step", "{}", "--run-id", "run-7", "--wait",
    ];
    let parent = traceparent("01");
    let traced = [&["--traceparent", &parent], &start[..]].concat();
    let output = flo.json(&traced);

    let names = [
        "flotilla.v1.WorkflowService/StartRun",
        "one-step/start",
        "task work",
    ];
    let [call, step, task] = collector.await_spans(names);
    assert_eq!([&call.trace, &step.trace, &task.trace], [TRACE; 3]);
    assert_eq!(call.parent, CALLER);
    assert_eq!(step.parent, call.id);
    assert_eq!(task.parent, step.id);
    let node = |id: u64| ("flotilla".to_owned(), id.to_string());
    assert_eq!(call.sender, node(follower));
    assert_eq!(step.sender, node(leader));
    assert_eq!(task.sender, ("flotilla-worker".to_owned(), "w1".to_owned()));
    assert_eq!(
        (call.kind, task.kind),
        (SpanKind::Server, SpanKind::Consumer)
    );
    assert_eq!(output, format!("00-{TRACE}-{}-01", task.id));

    assert_eq!(step.attributes["flotilla.run_id"], "run-7");
    assert_eq!(step.attributes["flotilla.outcome"], "success");
    assert_eq!(task.attributes["flotilla.attempt"], "1");
    let expected = ["awaiting_action", "action_started", "action_completed"];
    assert_eq!(step.events, expected);
    assert!(!step.is_error && step.took_ns >= task.took_ns, "{step:?}");
}

#[test]
fn a_step_is_one_trace_although_its_leader_is_killed_and_a_failure_shows() {
    let collector = Collector::start();
    let to = ["--otlp-endpoint", collector.endpoint()];
    let mut cluster = Cluster::of(&[1, 2, 3], &to);
    let flo = cluster.flo();
    let flags = [&["--worker-id", "w1"], &to[..]].concat();
    let gate = cluster.scratch().path("gate");
    let script = format!(
        "until [ -e {} ]; do sleep 0.01; done; exit 65",
        gate.display()
    );
    let actions = [("work", script.as_str())];
    let _worker = CommandWorker::start_with(&flo, cluster.scratch(), &flags, &actions);
    let definition = fixture("one-step.yaml");
    let _ = flo.text(&["workflow", "create", "-f", &definition]);
    let run = flo.text(&["workflow", "start", "one-step", "{}"]);
    wait_until("a task that runs", TIMEOUT, || {
        let history = flo.text(&["workflow", "history", run.trim()]);
        let is_running = history.contains("action_started");
        is_running.then_some(()).ok_or(history)
    });
    let killed = cluster.leader();
    cluster.kill(killed);
    let _ = cluster.scratch().write("gate", "");

    let [step, task] = collector.await_spans(["one-step/start", "task work"]);
    assert_eq!(step.trace, task.trace);
    assert_eq!((step.parent.as_str(), &task.parent), ("", &step.id));
    assert_ne!(step.sender.1, killed.to_string());
    assert!(step.is_error && task.is_error, "{step:?} {task:?}");
}

#[test]
fn what_is_not_to_be_sampled_leaves_no_span() {
    let collector = Collector::start();
    let node = DevNode::start_with(&["--ephemeral", "--otlp-endpoint", collector.endpoint()]);
    let flo = node.flo();
    await_agreement(&flo);
    let script = "printf %s \"${TRACEPARENT:-none}\"";
    let _worker = CommandWorker::start(&flo, node.scratch(), "w1", &[("work", script)]);
    let definition = fixture("one-step.yaml");
    let _ = flo.text(&["workflow", "create", "-f", &definition]);
    let start = |flags: &str| {
        let traceparent = traceparent(flags);
        let start = [
            "workflow",
            "start",
            "one-step",
            "{}",
            "--wait",
            "--traceparent",
            &traceparent,
        ];
        flo.json(&start)
    };
    assert_eq!(start("00"), "none");
    // Spans leave a node in order: the first run's would have come before the second's.
    let carried = start("01");
    assert!(
        carried.as_str().is_some_and(|text| text.contains(TRACE)),
        "{carried}"
    );
    let [step] = collector.await_spans(["one-step/start"]);
    let steps = collector
        .spans()
        .into_iter()
        .filter(|span| span.name == step.name);
    assert_eq!(steps.count(), 1);
}

#[test]
fn a_task_that_a_node_runs_itself_is_part_of_its_step() {
    let collector = Collector::start();
    let node = DevNode::start_with(&["--ephemeral", "--otlp-endpoint", collector.endpoint()]);
    let flo = node.flo();
    let module = example("actions/ship-order.wat");
    let _ = flo.text(&["action", "register", "work", "--wasm", &module]);
    let definition = fixture("one-step.yaml");
    let _ = flo.text(&["workflow", "create", "-f", &definition]);
    let _ = flo.text(&["workflow", "start", "one-step", "{}", "--wait"]);
    let [step, task] = collector.await_spans(["one-step/start", "task work"]);
    assert_eq!((&task.trace, &task.parent), (&step.trace, &step.id));
    // The same ids as in the registry and the history.
    assert_eq!(task.attributes["flotilla.worker_id"], "flo-node-1");
    assert_eq!(task.sender, ("flotilla".to_owned(), "1".to_owned()));
}
