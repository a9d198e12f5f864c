//! What a node logs about requests, and when it stops.

use crate::files::fixture;
use crate::wire;
use flotilla_api::v1;
use flotilla_tests::{Cluster, DevNode};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tonic::Request;
use tonic::metadata::MetadataValue;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[test]
fn the_log_says_for_which_request_trace_and_run_a_line_was_written() {
    let filter = "warn,openraft=error,flotilla_server=debug";
    let mut node = DevNode::start_with(&["--ephemeral", "--log", filter, "--log-format", "json"]);
    let definition = fixture("parked.yaml");
    let _ = node.flo().text(&["workflow", "create", "-f", &definition]);
    let start = v1::StartRunRequest {
        workflow: "parked".to_owned(),
        run_id: "run-7".to_owned(),
        ..v1::StartRunRequest::default()
    };
    let mut request = Request::new(start);
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let headers = [
        ("traceparent", parent.as_str()),
        ("x-request-id", "order-7"),
    ];
    for (name, value) in headers {
        let value = MetadataValue::try_from(value).expect("plain text");
        request.metadata_mut().insert(name, value);
    }
    let calling = async { wire::workflows(&node.endpoint()).start_run(request).await };
    wire::runtime().block_on(calling).expect("the run starts");

    // Written before the response was.
    let output = node.process().output();
    let lines = output
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let answered: Vec<Value> = lines
        .filter(|line| line["message"] == "answered")
        .filter(|line| line["spans"][0]["request_id"] == "order-7")
        .collect();
    let [line] = &answered[..] else {
        panic!("expected one line, but found {answered:?} in {output}");
    };
    let span = &line["spans"][0];
    assert_eq!(span["method"], "/flotilla.v1.WorkflowService/StartRun");
    assert_eq!(span["trace_id"], TRACE);
    assert_eq!(span["run_id"], "run-7");
    assert_eq!(
        (&line["level"], &line["code"]),
        (&"DEBUG".into(), &"Ok".into())
    );
}

/// Ends the load when it is dropped, also by a panic.
struct Load<'a>(&'a AtomicBool);

impl Drop for Load<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[test]
fn nodes_that_are_stopped_one_after_the_other_under_load_log_no_error() {
    let mut cluster = Cluster::start();
    let definition = fixture("parked.yaml");
    let flo = cluster.flo();
    let _ = flo.text(&["workflow", "create", "-f", &definition]);
    let is_loaded = AtomicBool::new(true);
    let mut outputs = Vec::new();
    thread::scope(|scope| {
        let _load = Load(&is_loaded);
        for _ in 0..4 {
            scope.spawn(|| {
                while is_loaded.load(Ordering::Relaxed) {
                    let _ = flo.text(&["workflow", "start", "parked"]);
                }
            });
        }
        // Each leader hands over to another one, which then sends appends to it.
        for _ in 0..3 {
            let leader = cluster.leader();
            let node = cluster.node_mut(leader);
            let status = node.stop();
            assert!(status.success(), "{status}");
            outputs.push(node.output());
            node.restart();
            cluster.await_health();
        }
    });
    for output in outputs {
        let mut lines = output.lines();
        let error = lines.find(|line| line.contains("ERROR"));
        assert_eq!(error, None);
    }
}
