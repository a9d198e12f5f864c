//! Tasks that are cancelled.

use super::{LONG, builder, failure, run};
use crate::fake::FakeNode;
use flotilla_api::v1;
use flotilla_api::v1::server_message::Message as ServerMessage;
use flotilla_client::ActionContext;
use tokio::sync::mpsc;
use tonic::Code;

#[tokio::test]
async fn a_cancelled_task_is_dropped_without_a_report() {
    let mut node = FakeNode::start().await;
    let (sender, mut contexts) = mpsc::channel(1);
    let _worker = run(
        builder(&[&node]).action("work", move |context: ActionContext| {
            let sender = sender.clone();
            async move {
                sender.send(context).await.expect("the test listens");
                std::future::pending().await
            }
        }),
    );
    let mut stream = node.employ().await;
    assert_eq!(stream.next_slots().await, 2);
    stream.assign("t1", LONG).await;
    let context = contexts.recv().await.expect("the handler runs");
    let cancel = v1::TaskCancelled {
        task_id: "t1".to_owned(),
        reason: "test".to_owned(),
        answer_awaited: false,
    };
    stream.send(ServerMessage::Cancelled(cancel)).await;
    assert_eq!(stream.next_slots().await, 3);
    // What a handler has spawned learns of the end in this way.
    context.cancellation().cancelled().await;
}

#[tokio::test]
async fn a_cancelled_task_whose_run_waits_is_reported_when_its_handler_has_stopped() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", |_| std::future::pending()));
    let mut stream = node.employ().await;
    assert_eq!(stream.next_slots().await, 2);
    stream.assign("t1", LONG).await;
    let cancel = v1::TaskCancelled {
        task_id: "t1".to_owned(),
        reason: "test".to_owned(),
        answer_awaited: true,
    };
    stream.send(ServerMessage::Cancelled(cancel)).await;
    let expected = (v1::FailKind::NoRetry, "cancelled".to_owned());
    assert_eq!(failure(&mut stream).await, expected);
}

#[tokio::test]
async fn a_touch_that_is_refused_because_the_task_is_cancelled_stops_the_handler() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", |_| std::future::pending()));
    let mut stream = node.employ().await;
    assert_eq!(stream.next_slots().await, 2);
    stream.assign("t1", 30).await;
    let (sequence, _touch) = stream.next_report().await;
    stream
        .refuse(sequence, Code::FailedPrecondition, "task_cancelled")
        .await;
    let expected = (v1::FailKind::NoRetry, "cancelled".to_owned());
    assert_eq!(failure(&mut stream).await, expected);
}
