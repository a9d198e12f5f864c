//! The worker SDK (A4a).

mod cancellation;
mod overload;
mod setup;

pub(crate) use setup::is_drawn_id;

use crate::fake::{FakeNode, WorkerStream, client, not_leader, refusal};
use crate::running::Running;
use flotilla_api::v1;
use flotilla_api::v1::server_message::Message as ServerMessage;
use flotilla_api::v1::worker_message::Message;
use flotilla_client::{ActionContext, ActionResult, HandlerError, Worker, WorkerBuilder};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tonic::Code;

/// A lease that no test outlives.
const LONG: u64 = 3_600_000;

fn builder(nodes: &[&FakeNode]) -> WorkerBuilder {
    Worker::builder(client(nodes))
        .worker_id("w1")
        .concurrency(2)
}

fn run(builder: WorkerBuilder) -> Running {
    let worker = builder.build().expect("the settings are valid");
    Running::start(|shutdown| worker.run(shutdown))
}

async fn done(_: ActionContext) -> Result<ActionResult, HandlerError> {
    Ok(ActionResult::named("approved", json!({"by": "test"})))
}

/// Signals to a test that a handler has begun, and lets the test end the handler.
#[derive(Clone, Default)]
struct Gate {
    begun: Arc<Notify>,
    open: Arc<Notify>,
}

impl Gate {
    async fn pass(self, context: ActionContext) -> Result<ActionResult, HandlerError> {
        self.begun.notify_one();
        self.open.notified().await;
        done(context).await
    }
}

async fn failure(stream: &mut WorkerStream) -> (v1::FailKind, String) {
    match stream.next_report().await.1 {
        Message::Failure(failure) => (failure.kind(), failure.code),
        other => panic!("expected a failure, but the worker said {other:?}"),
    }
}

async fn completion(stream: &mut WorkerStream) -> (u64, v1::TaskCompletion) {
    match stream.next_report().await {
        (sequence, Message::Completion(completion)) => (sequence, completion),
        (_, other) => panic!("expected a completion, but the worker said {other:?}"),
    }
}

#[tokio::test]
async fn a_task_is_run_and_its_outcome_reported() {
    let mut node = FakeNode::start().await;
    let ready = Arc::new(Notify::new());
    let signal = ready.clone();
    let worker = builder(&[&node])
        .label("zone", "a")
        .on_ready(move || signal.notify_one());
    let _worker = run(worker.action("work", done));

    let registered = node.register().await;
    assert_eq!(registered.max_concurrency, 2);
    assert_eq!(registered.labels["zone"], "a");
    assert_eq!(registered.processes[0].name, "work");
    let (mut stream, hello) = node.worker().await.accept().await;
    assert_eq!(hello.incarnation, registered.incarnation);
    assert_eq!(hello.actions, ["work"]);
    ready.notified().await;
    assert_eq!(stream.next_slots().await, 2);
    stream.assign("t1", LONG).await;
    let (sequence, completion) = completion(&mut stream).await;
    assert_eq!(completion.task_token, "t1");
    assert_eq!(completion.outcome, "approved");
    assert_eq!(completion.output, r#"{"by":"test"}"#);
    stream.accept(sequence).await;
    assert_eq!(
        stream.next_slots().await,
        3,
        "one task came, two slots are free"
    );
}

#[tokio::test]
async fn a_task_can_be_accepted_when_its_step_waits_for_a_report() {
    let mut node = FakeNode::start().await;
    let accept = async |context: ActionContext| -> Result<ActionResult, HandlerError> {
        let can_wait = context.report_timeout() == Some(Duration::from_millis(5));
        assert_eq!(can_wait, !context.report_url().is_empty());
        Ok(ActionResult::accepted())
    };
    let _worker = run(builder(&[&node]).action("work", accept));
    node.register().await;
    let (mut stream, _) = node.worker().await.accept().await;
    stream.assign_tracked("t1").await;
    let (sequence, said) = stream.next_report().await;
    let Message::Acceptance(acceptance) = said else {
        panic!("expected an acceptance, but the worker said {said:?}");
    };
    assert_eq!(acceptance.task_token, "t1");
    stream.accept(sequence).await;
    stream.assign("t2", LONG).await;
    let refused = (v1::FailKind::NoRetry, "task_not_tracked".to_owned());
    assert_eq!(failure(&mut stream).await, refused);
}

#[tokio::test]
async fn a_panic_is_a_failure_to_retry_and_the_worker_continues() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", |context| async move {
        assert!(context.task_token() != "t1", "t1 is unlucky");
        done(context).await
    }));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    let (sequence, report) = stream.next_report().await;
    let Message::Failure(failure) = report else {
        panic!("expected a failure: {report:?}")
    };
    assert_eq!(
        (failure.kind(), failure.code.as_str()),
        (v1::FailKind::Retry, "panic")
    );
    assert!(
        failure.message.contains("t1 is unlucky"),
        "{}",
        failure.message
    );
    stream.accept(sequence).await;
    stream.assign("t2", LONG).await;
    assert_eq!(completion(&mut stream).await.1.task_token, "t2");
}

#[tokio::test]
async fn a_handlers_error_keeps_its_kind() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", |context| async move {
        match context.task_token() {
            "retry" => Err(HandlerError::retry("later").with_code("busy")),
            "no" => Err(HandlerError::no_retry("never").with_code("broken")),
            _ => context.json::<u32>().map(ActionResult::success),
        }
    }));
    let mut stream = node.employ().await;
    stream.assign("retry", LONG).await;
    assert_eq!(
        failure(&mut stream).await,
        (v1::FailKind::Retry, "busy".to_owned())
    );
    stream.assign("no", LONG).await;
    assert_eq!(
        failure(&mut stream).await,
        (v1::FailKind::NoRetry, "broken".to_owned())
    );
    stream.assign("input", LONG).await;
    let expected = (v1::FailKind::NonRetryable, "input_invalid".to_owned());
    assert_eq!(failure(&mut stream).await, expected);
}

#[tokio::test]
async fn a_task_that_comes_twice_is_run_once() {
    let mut node = FakeNode::start().await;
    let started = Arc::new(AtomicU32::new(0));
    let (count, gate) = (started.clone(), Gate::default());
    let inside = gate.clone();
    let _worker = run(builder(&[&node]).action("work", move |context| {
        count.fetch_add(1, Ordering::SeqCst);
        inside.clone().pass(context)
    }));
    let mut stream = node.employ().await;
    assert_eq!(stream.next_slots().await, 2);
    stream.assign("t1", LONG).await;
    stream.assign("t1", LONG).await;
    assert_eq!(
        stream.next_slots().await,
        3,
        "two messages came, and one slot is free"
    );
    gate.open.notify_one();
    let (sequence, completion) = completion(&mut stream).await;
    assert_eq!(completion.task_token, "t1");
    stream.accept(sequence).await;
    assert_eq!(stream.next_slots().await, 4);
    assert_eq!(started.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_task_that_comes_again_when_it_is_over_is_not_run_again() {
    let mut node = FakeNode::start().await;
    let started = Arc::new(AtomicU32::new(0));
    let count = started.clone();
    let _worker = run(builder(&[&node]).action("work", move |context| {
        count.fetch_add(1, Ordering::SeqCst);
        done(context)
    }));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    let (sequence, _) = completion(&mut stream).await;
    stream.accept(sequence).await;
    // A delivery that lagged behind the handshake.
    stream.assign("t1", LONG).await;
    stream.assign("t2", LONG).await;
    let (sequence, next) = completion(&mut stream).await;
    assert_eq!(next.task_token, "t2");
    stream.accept(sequence).await;
    stream
        .end(refusal(Code::Unavailable, "outcome_unknown"))
        .await;

    let (mut stream, _) = node.worker().await.accept().await;
    stream.assign("t2", LONG).await;
    stream.assign("t3", LONG).await;
    assert_eq!(completion(&mut stream).await.1.task_token, "t3");
    assert_eq!(started.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_report_is_repeated_until_it_is_answered() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", done));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    let (_, lost) = completion(&mut stream).await;
    stream
        .end(refusal(Code::Unavailable, "outcome_unknown"))
        .await;

    let (mut stream, hello) = node.worker().await.accept().await;
    assert_eq!(
        hello.held_task_tokens,
        ["t1"],
        "or the cluster would hand it out again"
    );
    let (sequence, repeated) = completion(&mut stream).await;
    assert_eq!(repeated, lost);
    stream.accept(sequence).await;
    stream
        .end(refusal(Code::Unavailable, "outcome_unknown"))
        .await;

    let (_stream, hello) = node.worker().await.accept().await;
    assert_eq!(hello.held_task_tokens, Vec::<String>::new());
}

#[tokio::test]
async fn tasks_and_answers_may_come_several_in_one_message() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", done));
    node.register().await;
    let (mut stream, hello) = node.worker().await.accept().await;
    assert!(hello.supports_batches);
    stream.assign_together(&["t1", "t2"], LONG).await;
    let (first, _) = completion(&mut stream).await;
    let (second, _) = completion(&mut stream).await;
    stream.accept_together(&[second, first]).await;
    stream
        .end(refusal(Code::Unavailable, "outcome_unknown"))
        .await;

    let (_stream, hello) = node.worker().await.accept().await;
    assert_eq!(hello.held_task_tokens, Vec::<String>::new());
}

#[tokio::test]
async fn a_report_that_the_leader_could_not_decide_is_repeated() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", done));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    let (sequence, _) = completion(&mut stream).await;
    stream
        .refuse(sequence, Code::Unavailable, "outcome_unknown")
        .await;
    assert_eq!(completion(&mut stream).await.1.task_token, "t1");
    assert!(node.is_idle(), "the worker keeps its stream");
}

#[tokio::test]
async fn a_late_report_is_dropped() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", done));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    let (sequence, _) = completion(&mut stream).await;
    stream
        .refuse(sequence, Code::FailedPrecondition, "lease_lost")
        .await;
    stream.assign("t2", LONG).await;
    let (_, next) = completion(&mut stream).await;
    assert_eq!(next.task_token, "t2");
}

#[tokio::test]
async fn an_outcome_that_the_cluster_refuses_fails_the_task() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", done));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    let (sequence, _) = completion(&mut stream).await;
    stream
        .refuse(sequence, Code::InvalidArgument, "outcome_invalid")
        .await;
    let expected = (v1::FailKind::NoRetry, "outcome_invalid".to_owned());
    assert_eq!(failure(&mut stream).await, expected);
}

#[tokio::test]
async fn the_lease_is_touched_while_a_handler_runs() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", |_| std::future::pending()));
    let mut stream = node.employ().await;
    stream.assign("t1", 30).await;
    for _ in 0..3 {
        let (sequence, report) = stream.next_report().await;
        let Message::Touch(touch) = report else {
            panic!("expected a touch: {report:?}")
        };
        assert_eq!((touch.task_token.as_str(), touch.extend_ms), ("t1", 30));
        stream.accept(sequence).await;
    }
}

#[tokio::test]
async fn a_handler_can_extend_its_lease_and_learns_of_a_refusal() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", |context| async move {
        context.touch(60_000).await?;
        context.touch(u64::MAX / 2).await?;
        done(context).await
    }));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    let (sequence, report) = stream.next_report().await;
    let Message::Touch(touch) = report else {
        panic!("expected a touch: {report:?}")
    };
    assert_eq!(touch.extend_ms, 60_000);
    stream.accept(sequence).await;
    let (sequence, _) = stream.next_report().await;
    stream
        .refuse(sequence, Code::InvalidArgument, "extension_too_long")
        .await;
    assert_eq!(
        failure(&mut stream).await,
        (v1::FailKind::Retry, String::new())
    );
}

#[tokio::test]
async fn a_lost_lease_stops_the_handler_and_frees_its_slot() {
    let mut node = FakeNode::start().await;
    let _worker = run(builder(&[&node]).action("work", |_| std::future::pending()));
    let mut stream = node.employ().await;
    assert_eq!(stream.next_slots().await, 2);
    stream.assign("t1", 30).await;
    let (sequence, _touch) = stream.next_report().await;
    stream
        .refuse(sequence, Code::FailedPrecondition, "lease_lost")
        .await;
    assert_eq!(stream.next_slots().await, 3);
}

#[tokio::test]
async fn a_handler_that_takes_too_long_fails_without_retry() {
    let mut node = FakeNode::start().await;
    let worker = builder(&[&node]).action_timeout(Duration::from_millis(10));
    let _worker = run(worker.action("work", |_| std::future::pending()));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    let expected = (v1::FailKind::NoRetry, "handler_timeout".to_owned());
    assert_eq!(failure(&mut stream).await, expected);
}

#[tokio::test]
async fn a_worker_follows_the_leader() {
    let (mut follower, mut leader) = (FakeNode::start().await, FakeNode::start().await);
    let _worker = run(builder(&[&follower]).action("work", done));
    follower.register().await;
    follower.worker().await.refuse(not_leader(&leader));
    let (mut stream, _) = leader.worker().await.accept().await;
    stream.assign("t1", LONG).await;
    assert_eq!(completion(&mut stream).await.1.task_token, "t1");
}

#[tokio::test]
async fn a_worker_that_is_unknown_registers_again_and_keeps_its_tasks() {
    let mut node = FakeNode::start().await;
    let gate = Gate::default();
    let inside = gate.clone();
    let worker = builder(&[&node]).action("work", move |context| inside.clone().pass(context));
    let _worker = run(worker);
    let first = node.register().await;
    let (stream, _) = node.worker().await.accept().await;
    stream.assign("t1", LONG).await;
    gate.begun.notified().await;
    stream
        .end(refusal(Code::NotFound, "worker_not_found"))
        .await;

    let second = node.register().await;
    assert_eq!(
        second.incarnation, first.incarnation,
        "or its leases would be freed"
    );
    let (_stream, hello) = node.worker().await.accept().await;
    assert_eq!(hello.held_task_tokens, ["t1"]);
}

#[tokio::test]
async fn a_worker_that_was_replaced_ends() {
    let mut node = FakeNode::start().await;
    let worker = run(builder(&[&node]).action("work", done));
    node.register().await;
    node.worker()
        .await
        .refuse(refusal(Code::FailedPrecondition, "worker_replaced"));
    let error = worker
        .ended
        .await
        .expect("no panic")
        .expect_err("another one took its id");
    assert_eq!(error.code(), "worker_replaced");
}

#[tokio::test]
async fn a_worker_that_stops_lets_its_tasks_end_and_deregisters() {
    let mut node = FakeNode::start().await;
    let gate = Gate::default();
    let inside = gate.clone();
    let worker = builder(&[&node]).action("work", move |context| inside.clone().pass(context));
    let (told, mut waited_for) = mpsc::channel(1);
    let worker = run(worker.on_drain(move |tasks| {
        told.try_send(tasks).expect("called once");
    }));
    let mut stream = node.employ().await;
    assert_eq!(stream.next_slots().await, 2);
    stream.assign("t1", LONG).await;
    gate.begun.notified().await;
    worker.stop.send(()).expect("the worker runs");
    assert_eq!(waited_for.recv().await, Some(1));
    assert_eq!(stream.next_slots().await, 1, "it takes no more than it has");
    let (drain, call) = node.unary::<v1::DrainRequest>("drain").await;
    assert_eq!(drain.worker_id, "w1", "the registry shows that it drains");
    assert!(
        drain.incarnation.is_some(),
        "it must not drain its own successor"
    );
    call.answer(v1::DrainResponse {});
    gate.open.notify_one();
    let (sequence, _) = completion(&mut stream).await;
    stream.accept(sequence).await;
    let (gone, call) = node.unary::<v1::DeregisterRequest>("deregister").await;
    assert_eq!(gone.worker_id, "w1");
    assert!(
        gone.incarnation.is_some(),
        "it must not remove its own successor"
    );
    let limit = call.limit().expect("the node learns the deadline");
    assert!(
        limit <= Duration::from_secs(1),
        "a worker that stops must not wait long for a cluster that may be gone: {limit:?}"
    );
    call.answer(v1::DeregisterResponse {});
    worker
        .ended
        .await
        .expect("no panic")
        .expect("it stopped well");
}

#[tokio::test]
async fn a_task_that_outlives_the_grace_is_handed_back() {
    let mut node = FakeNode::start().await;
    let gate = Gate::default();
    let inside = gate.clone();
    let worker = builder(&[&node]).drain_grace(Duration::ZERO);
    let worker = run(worker.action("work", move |context| inside.clone().pass(context)));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    gate.begun.notified().await;
    worker.stop.send(()).expect("the worker runs");
    // No caller waits for the response.
    let (_, _unanswered) = node.unary::<v1::DrainRequest>("drain").await;
    let (sequence, report) = stream.next_report().await;
    let Message::Failure(failure) = report else {
        panic!("expected a failure: {report:?}")
    };
    assert_eq!(
        (failure.kind(), failure.code.as_str()),
        (v1::FailKind::Retry, "worker_stopped")
    );
    stream.accept(sequence).await;
    let (_, call) = node.unary::<v1::DeregisterRequest>("deregister").await;
    call.answer(v1::DeregisterResponse {});
    worker
        .ended
        .await
        .expect("no panic")
        .expect("it stopped well");
}

#[tokio::test]
async fn a_worker_that_is_drained_ends_by_itself() {
    let mut node = FakeNode::start().await;
    let (told, mut waited_for) = mpsc::channel(1);
    let worker = builder(&[&node]).on_drain(move |tasks| {
        told.try_send(tasks).expect("called once");
    });
    let worker = run(worker.action("work", done));
    let stream = node.employ().await;
    stream.send(ServerMessage::Draining(v1::Draining {})).await;
    assert_eq!(waited_for.recv().await, Some(0));
    let (_, call) = node.unary::<v1::DeregisterRequest>("deregister").await;
    call.answer(v1::DeregisterResponse {});
    worker
        .ended
        .await
        .expect("no panic")
        .expect("it was drained");
}

#[tokio::test]
async fn a_heartbeat_tells_the_load() {
    let mut node = FakeNode::start().await;
    let worker = builder(&[&node]).heartbeat_interval(Duration::from_millis(5));
    let _worker = run(worker.action("work", |_| std::future::pending()));
    let mut stream = node.employ().await;
    stream.assign("t1", LONG).await;
    loop {
        match stream.next().await {
            (sequence, Message::Heartbeat(v1::WorkerLoad { current_load: 0 })) => {
                stream.accept(sequence).await;
            }
            (_, Message::Heartbeat(v1::WorkerLoad { current_load })) => {
                assert_eq!(current_load, 1);
                break;
            }
            (_, Message::Slots(_)) => {}
            (_, other) => panic!("expected heartbeats, but the worker said {other:?}"),
        }
    }
}
