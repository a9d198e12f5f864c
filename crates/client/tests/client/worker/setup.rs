//! The setup of a worker: identity, concurrency and limits.

use super::{LONG, builder, completion, done, run};
use crate::fake::{FakeNode, client};
use flotilla_api::v1;
use flotilla_api::v1::server_message::Message as ServerMessage;
use flotilla_client::{ActionContext, ActionResult, HandlerError, Worker};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Barrier;

/// The default id of a worker on this machine.
pub(crate) fn is_drawn_id(worker_id: &str, machine_id: &str) -> bool {
    let number = worker_id
        .strip_prefix(machine_id)
        .and_then(|rest| rest.strip_prefix('-'));
    !machine_id.is_empty()
        && number.is_some_and(|number| {
            number.len() == 8 && number.chars().all(|digit| digit.is_ascii_hexdigit())
        })
}

#[tokio::test]
async fn a_worker_identifies_itself_and_uses_defaults_for_what_is_not_set() {
    let mut node = FakeNode::start().await;
    let silent = Worker::builder(client(&[&node])).action("work", done);
    let _silent = run(silent);
    let registered = node.register().await;
    let (id, machine) = (&registered.worker_id, &registered.machine_id);
    assert!(is_drawn_id(id, machine), "{id} on {machine}");
    assert_eq!(registered.worker_type(), v1::WorkerType::Action);
    assert_eq!(registered.max_concurrency, 10);
    assert_eq!(registered.processes[0].kind(), v1::ProcessKind::Action);
    assert!(registered.metadata.is_empty() && registered.labels.is_empty());

    let mut node = FakeNode::start().await;
    let told = builder(&[&node])
        .machine_id("rack-7")
        .metadata(r#"{"version":"2"}"#);
    let _told = run(told.action("work", done));
    let registered = node.register().await;
    assert_eq!(registered.worker_id, "w1");
    assert_eq!(registered.machine_id, "rack-7");
    assert_eq!(registered.metadata, r#"{"version":"2"}"#);
}

#[tokio::test]
async fn a_handler_knows_its_task_and_what_it_returns_is_a_success() {
    let mut node = FakeNode::start().await;
    let handler = async |context: ActionContext| -> Result<ActionResult, HandlerError> {
        let input: serde_json::Value = context.json()?;
        Ok(ActionResult::success(json!([
            input["n"],
            context.task_id(),
            context.action_name(),
            context.attempt(),
            context.created_at_ms(),
            context.run_id(),
        ])))
    };
    let _worker = run(builder(&[&node]).action("work", handler));
    let mut stream = node.employ().await;
    let task = v1::TaskAssignment {
        task_token: "t1".to_owned(),
        task_id: "arun-1.3".to_owned(),
        action: "work".to_owned(),
        input: r#"{"n":7}"#.into(),
        attempt: 3,
        created_at_ms: 1_700,
        lease_ms: LONG,
        run_id: Some("wfrun-1".to_owned()),
        ..v1::TaskAssignment::default()
    };
    stream.send(ServerMessage::Task(task)).await;
    let (_, completion) = completion(&mut stream).await;
    assert_eq!(completion.outcome, "success");
    assert_eq!(
        completion.output,
        r#"[7,"arun-1.3","work",3,1700,"wfrun-1"]"#
    );
}

#[tokio::test]
async fn as_many_handlers_run_at_a_time_as_the_worker_has_slots() {
    let mut node = FakeNode::start().await;
    let meeting = Arc::new(Barrier::new(2));
    let place = meeting.clone();
    let _worker = run(builder(&[&node]).action("work", move |context| {
        let place = place.clone();
        async move {
            // Each handler needs the others to continue.
            place.wait().await;
            done(context).await
        }
    }));
    let mut stream = node.employ().await;
    assert_eq!(stream.next_slots().await, 2);
    stream.assign("t1", LONG).await;
    stream.assign("t2", LONG).await;
    let mut tokens = [
        completion(&mut stream).await.1.task_token,
        completion(&mut stream).await.1.task_token,
    ];
    tokens.sort();
    assert_eq!(tokens, ["t1", "t2"]);
}
