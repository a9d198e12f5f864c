//! Outcomes of accepted tasks: reported by RPC and over HTTP, at any node (W38).

use crate::node::{Node, refused};
use crate::web::exchange;
use flotilla_api::v1;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

const PAYMENT: &str = r#"
kind: Workflow
name: payment
version: "1.0.0"
plans:
  pay:
    executors:
      - name: bank
        action: "@actions/charge"
        tracking: {mode: async, timeout_ms: 600000}
start:
  run: "@plan/pay"
  transitions: {success: flo.Completed, failure: flo.Failed}
"#;

/// Starts a run, and takes its task at the node.
async fn take(node: &Node) -> v1::TaskAssignment {
    let action = v1::RegisterActionRequest {
        name: "charge".to_owned(),
        ..v1::RegisterActionRequest::default()
    };
    node.actions().register_action(action).await.unwrap();
    let worker = v1::RegisterRequest {
        worker_id: "w".to_owned(),
        incarnation: 1,
        ..v1::RegisterRequest::default()
    };
    node.workers().register(worker).await.unwrap();
    let create = v1::CreateWorkflowRequest {
        source: PAYMENT.to_owned(),
        ..v1::CreateWorkflowRequest::default()
    };
    node.workflows().create_workflow(create).await.unwrap();
    let start = v1::StartRunRequest {
        workflow: "payment".to_owned(),
        run_id: "run-1".to_owned(),
        ..v1::StartRunRequest::default()
    };
    node.workflows().start_run(start).await.unwrap();
    let poll = v1::AwaitRequest {
        worker_id: "w".to_owned(),
        incarnation: 1,
        actions: vec!["charge".to_owned()],
        slots: 1,
        ..v1::AwaitRequest::default()
    };
    let response = node.workers().r#await(poll).await.unwrap().into_inner();
    response.tasks.into_iter().next().unwrap()
}

async fn run_of(node: &Node) -> v1::Run {
    let request = v1::GetRunRequest {
        run_id: "run-1".to_owned(),
        ..v1::GetRunRequest::default()
    };
    node.workflows()
        .get_run(request)
        .await
        .unwrap()
        .into_inner()
}

/// Accepts the task, twice: as after a lost response.
async fn accept(node: &Node, task: &v1::TaskAssignment) {
    let acceptance = v1::TaskAcceptance {
        task_token: task.task_token.clone(),
    };
    let request = v1::AcceptRequest {
        acceptances: vec![acceptance.clone(), acceptance],
        ..v1::AcceptRequest::default()
    };
    let results = node.workers().accept(request).await.unwrap().into_inner();
    assert_eq!(
        results.results,
        [v1::ItemResult::default(), v1::ItemResult::default()]
    );
}

/// POSTs to the node over HTTP, and returns the status line and the body.
async fn post(node: &Node, path: &str, token: &str, body: &str) -> (String, String) {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    exchange(&node.http_address, &request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_task_is_reported_over_http_at_any_node() {
    let nodes = Node::start_cluster().await;
    let task = take(&nodes[0]).await;
    assert_eq!(task.report_timeout_ms, Some(600_000));
    let path = format!("/v1/tasks/{}/report", task.task_id);
    let urls = nodes
        .iter()
        .map(|node| format!("http://{}{path}", node.http_address));
    assert_eq!(
        urls.filter(|url| *url == task.report_url).count(),
        1,
        "{task:?}"
    );
    accept(&nodes[1], &task).await;
    let waiting = run_of(&nodes[2]).await;
    assert_eq!(
        waiting.current_steps[0].waiting_for(),
        v1::WaitingFor::Report
    );

    let body = r#"{"output": {"amount": 1.50}}"#;
    for (node, expected) in nodes.iter().zip(["200 OK", "409 Conflict", "409 Conflict"]) {
        let (status, body) = post(node, &path, &task.task_token, body).await;
        assert_eq!(status, format!("HTTP/1.1 {expected}"), "{body}");
    }
    let run = run_of(&nodes[2]).await;
    assert_eq!(run.status(), v1::RunStatus::Completed);
    assert_eq!(run.output.unwrap(), r#"{"amount": 1.50}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_is_sent_again_with_its_request_id_is_the_same_one() {
    let node = Node::start().await;
    let task = take(&node).await;
    accept(&node, &task).await;
    let report = v1::ReportTaskRequest {
        task_token: task.task_token,
        request_id: vec![7; 16].into(),
        ..v1::ReportTaskRequest::default()
    };
    let mut actions = node.actions();
    actions.report_task(report.clone()).await.unwrap();
    actions.report_task(report.clone()).await.unwrap();
    let other = v1::ReportTaskRequest {
        request_id: vec![8; 16].into(),
        ..report
    };
    let refusal = refused(actions.report_task(other).await);
    assert_eq!(
        refusal,
        (Code::FailedPrecondition, "action_run_ended".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_served_over_http_is_said() {
    let node = Node::start().await;
    let (status, body) = post(&node, "/v1/runs", "x", "").await;
    assert_eq!(status, "HTTP/1.1 404 Not Found");
    assert!(body.contains("path_not_found"), "{body}");
    let request = "GET /v1/tasks/x/report HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n";
    let (status, body) = exchange(&node.http_address, request).await;
    assert_eq!(status, "HTTP/1.1 405 Method Not Allowed");
    assert!(body.contains("method_not_allowed"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_nothing_does_not_keep_a_node_from_stopping() {
    let node = Node::start().await;
    let mut idle = TcpStream::connect(&node.http_address).await.unwrap();
    // Half a request: the node keeps the connection open.
    idle.write_all(b"POST /v1/tasks/x/report HTTP/1.1\r\nHost")
        .await
        .unwrap();
    let (ended, _data) = node.stop().await;
    ended.unwrap();
    let mut rest = Vec::new();
    // It ends, with or without an error.
    let _ = idle.read_to_end(&mut rest).await;
}
