//! What a node logs about requests.

use crate::files::fixture;
use crate::wire;
use flotilla_api::v1;
use flotilla_tests::DevNode;
use serde_json::Value;
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
