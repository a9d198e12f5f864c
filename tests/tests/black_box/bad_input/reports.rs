//! Late or duplicate reports of workers.

use crate::files::fixture;
use crate::history::{self, Event};
use crate::wire::{self, DEADLINE};
use bytes::Bytes;
use flotilla_api::v1;
use flotilla_api::v1::worker_service_client::WorkerServiceClient;
use flotilla_tests::{DevNode, Flo};
use serde_json::json;
use tonic::transport::Channel;

/// A worker that uses the protocol directly, without the SDK.
struct HandWorker {
    service: WorkerServiceClient<Channel>,
    id: &'static str,
    incarnation: u64,
    polls: u8,
}

impl HandWorker {
    async fn register(node: &DevNode, id: &'static str) -> Self {
        let mut service = wire::workers(&node.endpoint());
        let request = v1::RegisterRequest {
            worker_id: id.to_owned(),
            incarnation: 7,
            max_concurrency: 1,
            processes: vec![v1::Process {
                name: "work".to_owned(),
                kind: v1::ProcessKind::Action.into(),
            }],
            ..v1::RegisterRequest::default()
        };
        let registered = service.register(wire::within(DEADLINE, request)).await;
        registered.expect("a new worker is registered");
        Self {
            service,
            id,
            incarnation: 7,
            polls: 0,
        }
    }

    async fn take(&mut self) -> v1::TaskAssignment {
        self.polls += 1;
        let request = v1::AwaitRequest {
            worker_id: self.id.to_owned(),
            incarnation: self.incarnation,
            poll_id: Bytes::from(vec![self.polls; 16]),
            actions: vec!["work".to_owned()],
            slots: 1,
            wait_ms: Some(20_000),
            ..v1::AwaitRequest::default()
        };
        let reply = self.service.r#await(wire::within(DEADLINE, request)).await;
        let mut tasks = reply
            .expect("a registered worker is served")
            .into_inner()
            .tasks;
        tasks.pop().expect("a task within the wait")
    }

    /// Reports an outcome and returns the error code of a refusal.
    async fn complete(&mut self, token: &str, output: &str) -> Option<v1::ItemError> {
        let completion = v1::TaskCompletion {
            task_token: token.to_owned(),
            output: Bytes::copy_from_slice(output.as_bytes()),
            ..v1::TaskCompletion::default()
        };
        let request = v1::CompleteRequest {
            completions: vec![completion],
            ..v1::CompleteRequest::default()
        };
        let reply = self.service.complete(wire::within(DEADLINE, request)).await;
        let mut results = reply.expect("each report is answered").into_inner().results;
        results.pop().expect("a result for each report").error
    }
}

fn start_run(flo: &Flo, timeout_ms: &str) -> String {
    let _ = flo.text(&["action", "register", "work", "--timeout-ms", timeout_ms]);
    let _ = flo.text(&["workflow", "create", "-f", &fixture("one-step.yaml")]);
    flo.text(&["workflow", "start", "one-step"])
}

fn expect_completed_once(flo: &Flo, run_id: &str, output: &serde_json::Value) {
    let events = flo.json_lines(&["workflow", "history", run_id, "--follow"]);
    let events: Vec<Event> = events.into_iter().map(Event::from).collect();
    history::expect_sound(run_id, &events);
    assert_eq!(&flo.json(&["workflow", "status", run_id])["output"], output);
}

#[test]
fn a_doubled_completion_changes_nothing() {
    let node = DevNode::start();
    let flo = node.flo();
    let run_id = start_run(&flo, "30000");
    wire::runtime().block_on(async {
        let mut worker = HandWorker::register(&node, "w1").await;
        let task = worker.take().await;
        let first = worker.complete(&task.task_token, r#"{"n":1}"#).await;
        assert_eq!(first, None);
        for output in [r#"{"n":1}"#, r#"{"n":2}"#] {
            if let Some(error) = worker.complete(&task.task_token, output).await {
                let reasons = ["lease_lost", "action_run_ended"];
                assert!(reasons.contains(&error.code.as_str()), "{error:?}");
                assert!(error.message.starts_with("expected"), "{error:?}");
            }
        }
    });
    expect_completed_once(&flo, &run_id, &json!({"n": 1}));
}

#[test]
fn a_late_completion_is_refused_and_the_other_workers_counts() {
    let node = DevNode::start();
    let flo = node.flo();
    let run_id = start_run(&flo, "500");
    wire::runtime().block_on(async {
        let mut late = HandWorker::register(&node, "late").await;
        let mut swift = HandWorker::register(&node, "swift").await;
        let lost = late.take().await;
        let task = swift.take().await;
        assert_eq!(task.action_run_id, lost.action_run_id);
        assert_eq!((lost.attempt, task.attempt), (1, 2));
        let error = late.complete(&lost.task_token, r#""late""#).await;
        let error = error.expect("the lease has expired");
        assert_eq!(error.code, "lease_lost", "{error:?}");
        assert!(!error.hint.is_empty(), "{error:?}");
        assert_eq!(swift.complete(&task.task_token, r#""swift""#).await, None);
        let error = late.complete(&lost.task_token, r#""late""#).await;
        assert!(error.is_some(), "the action run is over");
    });
    expect_completed_once(&flo, &run_id, &json!("swift"));
}

#[test]
fn a_report_with_an_invented_token_is_refused() {
    let node = DevNode::start();
    wire::runtime().block_on(async {
        let mut worker = HandWorker::register(&node, "w1").await;
        let error = worker.complete("no-token-of-ours", "1").await;
        let error = error.expect("this token was never issued");
        assert!(error.message.starts_with("expected"), "{error:?}");
    });
}
