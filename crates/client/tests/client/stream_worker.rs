//! The stream worker SDK.

use crate::fake::{FakeNode, client, refusal};
use crate::running::Running;
use crate::worker::is_drawn_id;
use flotilla_api::v1;
use flotilla_client::{RecordError, StreamContext, StreamWorker, StreamWorkerBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, oneshot};
use tonic::Code;

/// A time that no test outlives.
const LONG_MS: u64 = 3_600_000;

/// A worker that holds one record at a time, so that its calls are sequential.
fn builder<H, F>(node: &FakeNode, handler: H) -> StreamWorkerBuilder
where
    H: Fn(StreamContext) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), RecordError>> + Send + 'static,
{
    StreamWorker::builder(client(&[node]), "orders", handler)
        .group("billing")
        .worker_id("w1")
        .concurrency(1)
        .heartbeat_interval(Duration::from_millis(LONG_MS))
}

fn run(builder: StreamWorkerBuilder) -> Running {
    let worker = builder.build().expect("the settings are valid");
    Running::start(|shutdown| worker.run(shutdown))
}

async fn fine(_: StreamContext) -> Result<(), RecordError> {
    Ok(())
}

/// Registers the worker and admits it to its group.
async fn employ(node: &mut FakeNode, ack_timeout_ms: u64) {
    let (worker, call) = node.unary::<v1::RegisterRequest>("register").await;
    assert_eq!(worker.worker_type(), v1::WorkerType::Stream);
    assert_eq!(worker.processes[0].name, "orders/billing");
    assert_eq!(worker.processes[0].kind(), v1::ProcessKind::StreamConsumer);
    call.answer(v1::RegisterResponse::default());
    join(node, ack_timeout_ms).await;
}

async fn join(node: &mut FakeNode, ack_timeout_ms: u64) {
    let (joining, call) = node.unary::<v1::JoinGroupRequest>("join_group").await;
    assert_eq!(
        (joining.stream.as_str(), joining.group.as_str()),
        ("orders", "billing")
    );
    assert_eq!(joining.consumer, "w1");
    call.answer(v1::JoinGroupResponse {
        mode: v1::GroupMode::Shared.into(),
        ack_timeout_ms,
    });
}

fn delivery(id: &str) -> v1::TakeRecordsResponse {
    let record = v1::Record {
        id: id.to_owned(),
        payload: r#"{"n":1}"#.into(),
        headers: [("source".to_owned(), "web".to_owned())].into(),
        ..v1::Record::default()
    };
    let delivery = v1::Delivery {
        record: Some(record),
        attempt: 1,
        ..v1::Delivery::default()
    };
    v1::TakeRecordsResponse {
        deliveries: vec![delivery],
    }
}

/// Delivers one record and returns the take's id.
async fn give(node: &mut FakeNode, id: &str) -> u64 {
    let (take, call) = node.unary::<v1::TakeRecordsRequest>("take_records").await;
    assert_eq!((take.limit, take.block_ms), (1, Some(30_000)));
    call.answer(delivery(id));
    take.take_id
}

async fn expect_nack(node: &mut FakeNode, take_id: u64, id: &str) -> u64 {
    let (nack, call) = node.unary::<v1::NackRecordsRequest>("nack_records").await;
    assert_eq!((nack.take_id, nack.ids), (take_id, vec![id.to_owned()]));
    call.answer(v1::NackRecordsResponse::default());
    nack.delay_ms
}

#[tokio::test]
async fn a_record_is_acknowledged_when_its_handler_returns() {
    let mut node = FakeNode::start().await;
    let handler = |context: StreamContext| async move {
        let value: serde_json::Value = context.json()?;
        assert_eq!(value["n"], 1);
        assert_eq!(context.payload(), r#"{"n":1}"#);
        assert_eq!(context.headers()["source"], "web");
        assert_eq!((context.stream(), context.group()), ("orders", "billing"));
        assert_eq!((context.consumer(), context.namespace()), ("w1", "default"));
        assert_eq!((context.stream_id(), context.attempt()), ("7-0", 1));
        Ok(())
    };
    let _running = run(builder(&node, handler));
    employ(&mut node, LONG_MS).await;
    let take_id = give(&mut node, "7-0").await;
    let (ack, call) = node.unary::<v1::AckRecordsRequest>("ack_records").await;
    assert_eq!((ack.take_id, ack.ids), (take_id, vec!["7-0".to_owned()]));
    // A lost response is requested again.
    call.refuse(refusal(Code::Unavailable, "outcome_unknown"));
    let (again, call) = node.unary::<v1::AckRecordsRequest>("ack_records").await;
    assert_eq!(again.take_id, take_id);
    call.answer(v1::AckRecordsResponse { acked_count: 1 });
    assert_ne!(give(&mut node, "8-0").await, take_id);
}

#[tokio::test]
async fn a_handler_that_fails_panics_or_takes_too_long_gives_its_record_back() {
    let mut node = FakeNode::start().await;
    let handler = |context: StreamContext| async move {
        match context.stream_id() {
            "1-0" => Err(RecordError::new("later").after(Duration::from_secs(5))),
            "2-0" => Err(std::io::Error::other("disk full").into()),
            "3-0" => panic!("a bug of the handler"),
            _ => std::future::pending().await,
        }
    };
    let builder = builder(&node, handler).message_timeout(Duration::from_millis(50));
    let _running = run(builder);
    employ(&mut node, LONG_MS).await;
    for (id, delay_ms) in [
        ("1-0", 5_000),
        ("2-0", 1_000),
        ("3-0", 1_000),
        ("4-0", 1_000),
    ] {
        let take_id = give(&mut node, id).await;
        assert_eq!(expect_nack(&mut node, take_id, id).await, delay_ms, "{id}");
    }
}

#[tokio::test]
async fn a_worker_identifies_itself_and_uses_defaults_for_what_is_not_set() {
    let mut node = FakeNode::start().await;
    let _running = run(StreamWorker::builder(client(&[&node]), "orders", fine));
    let (worker, call) = node.unary::<v1::RegisterRequest>("register").await;
    call.answer(v1::RegisterResponse::default());
    let (id, machine) = (&worker.worker_id, &worker.machine_id);
    assert!(is_drawn_id(id, machine), "{id} on {machine}");
    assert_eq!(worker.processes[0].name, "orders/default");
    assert_eq!((worker.max_concurrency, worker.metadata.len()), (10, 0));
    let (joining, call) = node.unary::<v1::JoinGroupRequest>("join_group").await;
    assert_eq!(joining.group, "default");
    assert_eq!((&joining.consumer, &joining.worker_id), (id, id));
    assert!(joining.create.is_some(), "a group that is missing is made");
    call.answer(v1::JoinGroupResponse {
        mode: v1::GroupMode::Shared.into(),
        ack_timeout_ms: LONG_MS,
    });
    let (take, _call) = node.unary::<v1::TakeRecordsRequest>("take_records").await;
    assert_eq!((take.limit, take.block_ms), (10, Some(30_000)));

    let mut node = FakeNode::start().await;
    let told = builder(&node, fine)
        .consumer("front")
        .machine_id("rack-7")
        .metadata(r#"{"version":"2"}"#);
    let _running = run(told);
    let (worker, call) = node.unary::<v1::RegisterRequest>("register").await;
    call.answer(v1::RegisterResponse::default());
    assert_eq!(worker.machine_id, "rack-7");
    assert_eq!(worker.metadata, r#"{"version":"2"}"#);
    let (joining, _call) = node.unary::<v1::JoinGroupRequest>("join_group").await;
    assert_eq!(
        (joining.consumer.as_str(), joining.worker_id.as_str()),
        ("front", "w1")
    );
}

#[tokio::test]
async fn a_worker_takes_batches_and_never_more_records_than_it_has_room_for() {
    let mut node = FakeNode::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let closed = gate.clone();
    let handler = move |_: StreamContext| {
        let closed = closed.clone();
        async move {
            closed.acquire().await?.forget();
            Ok(())
        }
    };
    let builder = builder(&node, handler).concurrency(3).batch_size(2);
    let _running = run(builder);
    employ(&mut node, LONG_MS).await;
    let (take, call) = node.unary::<v1::TakeRecordsRequest>("take_records").await;
    assert_eq!(take.limit, 2, "no more than a batch");
    let batch = [delivery("1-0"), delivery("2-0")].map(|one| one.deliveries);
    call.answer(v1::TakeRecordsResponse {
        deliveries: batch.concat(),
    });
    give(&mut node, "3-0").await;
    // All three handlers run: the next call is an ack, which frees a slot.
    gate.add_permits(1);
    let (_, call) = node.unary::<v1::AckRecordsRequest>("ack_records").await;
    call.answer(v1::AckRecordsResponse { acked_count: 1 });
    give(&mut node, "4-0").await;
}

#[tokio::test]
async fn a_heartbeat_tells_how_many_records_are_in_hand() {
    let mut node = FakeNode::start().await;
    let handler = |_: StreamContext| std::future::pending();
    let builder = builder(&node, handler).heartbeat_interval(Duration::from_millis(10));
    let _running = run(builder);
    let (_, call) = node.unary::<v1::RegisterRequest>("register").await;
    call.answer(v1::RegisterResponse::default());
    let joined = v1::JoinGroupResponse {
        ack_timeout_ms: LONG_MS,
        ..v1::JoinGroupResponse::default()
    };
    let mut load = 0;
    while load == 0 {
        let call = node.call().await;
        match call.rpc() {
            "join_group" => call.answer(joined),
            "take_records" => call.answer(delivery("7-0")),
            "heartbeat" => {
                load = call.decode::<v1::HeartbeatRequest>().current_load;
                call.answer(v1::HeartbeatResponse::default());
            }
            other => panic!("expected no call of {other}"),
        }
    }
    assert_eq!(load, 1);
}

#[tokio::test]
async fn a_take_without_an_answer_is_sent_again_with_the_same_id() {
    let mut node = FakeNode::start().await;
    let _running = run(builder(&node, fine));
    employ(&mut node, LONG_MS).await;
    let (take, call) = node.unary::<v1::TakeRecordsRequest>("take_records").await;
    call.refuse(refusal(Code::Unavailable, "outcome_unknown"));
    assert_eq!(give(&mut node, "7-0").await, take.take_id);
}

#[tokio::test]
async fn a_record_is_touched_while_its_handler_runs_and_dropped_when_it_is_gone() {
    let mut node = FakeNode::start().await;
    let (dropped, was_dropped) = oneshot::channel::<()>();
    let dropped = Arc::new(std::sync::Mutex::new(Some(dropped)));
    let handler = move |_: StreamContext| {
        let guard = dropped.lock().expect("no panic").take();
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    };
    let _running = run(builder(&node, handler));
    employ(&mut node, 30).await;
    let take_id = give(&mut node, "7-0").await;
    for _ in 0..2 {
        let (touch, call) = node.unary::<v1::TouchRecordsRequest>("touch_records").await;
        assert_eq!((touch.take_id, touch.extend_ms), (take_id, 30));
        call.answer(v1::TouchRecordsResponse::default());
    }
    let (_, call) = node.unary::<v1::TouchRecordsRequest>("touch_records").await;
    call.refuse(refusal(Code::FailedPrecondition, "delivery_ended"));
    assert!(was_dropped.await.is_err(), "the handler is dropped");
    // Nothing is settled; the slot is free again.
    give(&mut node, "8-0").await;
}

#[tokio::test]
async fn a_record_is_touched_until_its_acknowledgement_is_answered() {
    let mut node = FakeNode::start().await;
    let _running = run(builder(&node, fine));
    employ(&mut node, 30).await;
    give(&mut node, "7-0").await;
    let (_, ack) = node.unary::<v1::AckRecordsRequest>("ack_records").await;
    for _ in 0..2 {
        let (_, call) = node.unary::<v1::TouchRecordsRequest>("touch_records").await;
        call.answer(v1::TouchRecordsResponse::default());
    }
    // The acknowledgement itself may have removed it.
    let (_, call) = node.unary::<v1::TouchRecordsRequest>("touch_records").await;
    call.refuse(refusal(Code::FailedPrecondition, "delivery_ended"));
    ack.answer(v1::AckRecordsResponse { acked_count: 1 });
    give(&mut node, "8-0").await;
}

#[tokio::test]
async fn a_consumer_that_was_removed_joins_again() {
    let mut node = FakeNode::start().await;
    let _running = run(builder(&node, fine));
    employ(&mut node, LONG_MS).await;
    let (_, call) = node.unary::<v1::TakeRecordsRequest>("take_records").await;
    call.refuse(refusal(Code::NotFound, "consumer_not_found"));
    join(&mut node, LONG_MS).await;
    give(&mut node, "7-0").await;
}

#[tokio::test]
async fn a_consumer_takes_its_name_over_once_and_renews_it_from_then_on() {
    let mut node = FakeNode::start().await;
    let _running = run(builder(&node, fine));
    let (_, call) = node.unary::<v1::RegisterRequest>("register").await;
    call.answer(v1::RegisterResponse::default());
    // A refused join, or one without a response, may not have taken effect.
    for reason in ["stream_not_found", "outcome_unknown"] {
        let (joining, call) = node.unary::<v1::JoinGroupRequest>("join_group").await;
        assert!(!joining.renewal, "before {reason}");
        call.refuse(refusal(Code::Unavailable, reason));
    }
    let (first, call) = node.unary::<v1::JoinGroupRequest>("join_group").await;
    assert!(!first.renewal);
    call.answer(v1::JoinGroupResponse::default());
    let (take, call) = node.unary::<v1::TakeRecordsRequest>("take_records").await;
    assert_eq!(take.incarnation, first.incarnation);
    call.refuse(refusal(Code::NotFound, "consumer_not_found"));
    let (again, _call) = node.unary::<v1::JoinGroupRequest>("join_group").await;
    assert_eq!(
        (again.renewal, again.incarnation),
        (true, first.incarnation)
    );
}

#[tokio::test]
async fn a_worker_whose_consumer_was_replaced_ends_and_says_so() {
    let replaced = || refusal(Code::FailedPrecondition, "consumer_replaced");
    let mut node = FakeNode::start().await;
    let running = run(builder(&node, fine));
    employ(&mut node, LONG_MS).await;
    let (_, call) = node.unary::<v1::TakeRecordsRequest>("take_records").await;
    call.refuse(replaced());
    let error = running.ended.await.expect("no panic");
    assert_eq!(error.expect_err("refused").code(), "consumer_replaced");

    // A worker whose handlers are busy takes nothing: it learns of the replacement when it renews
    // its membership.
    let mut node = FakeNode::start().await;
    let builder = builder(&node, fine).heartbeat_interval(Duration::from_millis(10));
    let running = run(builder);
    employ(&mut node, LONG_MS).await;
    let (_, _waiting) = node.unary::<v1::TakeRecordsRequest>("take_records").await;
    let (_, call) = node.unary::<v1::HeartbeatRequest>("heartbeat").await;
    call.answer(v1::HeartbeatResponse::default());
    let (renewal, call) = node.unary::<v1::JoinGroupRequest>("join_group").await;
    assert!(renewal.renewal);
    call.refuse(replaced());
    let error = running.ended.await.expect("no panic");
    assert_eq!(error.expect_err("refused").code(), "consumer_replaced");
}

#[tokio::test]
async fn a_worker_waits_for_its_stream_and_is_ready_meanwhile() {
    let mut node = FakeNode::start().await;
    let ready = Arc::new(Notify::new());
    let told = ready.clone();
    let _running = run(builder(&node, fine).on_ready(move || told.notify_one()));
    let (_, call) = node.unary::<v1::RegisterRequest>("register").await;
    call.answer(v1::RegisterResponse::default());
    let (_, call) = node.unary::<v1::JoinGroupRequest>("join_group").await;
    call.refuse(refusal(Code::NotFound, "stream_not_found"));
    ready.notified().await;
    join(&mut node, LONG_MS).await;
    give(&mut node, "7-0").await;
}

#[tokio::test]
async fn a_worker_that_is_stopped_lets_its_handler_end_and_leaves() {
    let mut node = FakeNode::start().await;
    let (begun, open) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gate = (begun.clone(), open.clone());
    let handler = move |_: StreamContext| {
        let (begun, open) = gate.clone();
        async move {
            begun.notify_one();
            open.notified().await;
            Ok(())
        }
    };
    let running = run(builder(&node, handler));
    employ(&mut node, LONG_MS).await;
    give(&mut node, "7-0").await;
    begun.notified().await;
    running.stop.send(()).expect("the worker runs");
    expect_drain(&mut node).await;
    open.notify_one();
    let (_, call) = node.unary::<v1::AckRecordsRequest>("ack_records").await;
    call.answer(v1::AckRecordsResponse { acked_count: 1 });
    expect_farewell(&mut node).await;
    running.ended.await.expect("no panic").expect("a good end");
}

#[tokio::test]
async fn a_handler_that_outlives_the_grace_is_dropped_and_its_record_left_to_others() {
    let mut node = FakeNode::start().await;
    let begun = Arc::new(Notify::new());
    let told = begun.clone();
    let handler = move |_: StreamContext| {
        told.notify_one();
        std::future::pending()
    };
    let running = run(builder(&node, handler).drain_grace(Duration::from_millis(10)));
    employ(&mut node, LONG_MS).await;
    give(&mut node, "7-0").await;
    begun.notified().await;
    running.stop.send(()).expect("the worker runs");
    expect_drain(&mut node).await;
    expect_farewell(&mut node).await;
    running.ended.await.expect("no panic").expect("a good end");
}

#[tokio::test]
async fn a_worker_that_is_drained_or_replaced_ends() {
    for (answer, is_good) in [(Ok(()), true), (Err("worker_replaced"), false)] {
        let mut node = FakeNode::start().await;
        let builder = builder(&node, fine).heartbeat_interval(Duration::from_millis(10));
        let running = run(builder);
        employ(&mut node, LONG_MS).await;
        let (_, _waiting) = node.unary::<v1::TakeRecordsRequest>("take_records").await;
        let (_, call) = node.unary::<v1::HeartbeatRequest>("heartbeat").await;
        match answer {
            Ok(()) => {
                call.answer(v1::HeartbeatResponse {
                    status: v1::WorkerStatus::Draining.into(),
                });
                expect_farewell(&mut node).await;
            }
            Err(reason) => call.refuse(refusal(Code::FailedPrecondition, reason)),
        }
        let ended = running.ended.await.expect("no panic");
        assert_eq!(ended.is_ok(), is_good);
    }
}

#[tokio::test]
async fn a_busy_worker_that_somebody_drains_is_heard_until_its_handlers_have_ended() {
    let mut node = FakeNode::start().await;
    let open = Arc::new(Notify::new());
    let gate = open.clone();
    let handler = move |_: StreamContext| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok(())
        }
    };
    let (drains, drain) = oneshot::channel();
    let builder = builder(&node, handler)
        .heartbeat_interval(Duration::from_millis(10))
        .drain_grace(Duration::ZERO)
        .on_drain(move |in_flight| {
            let _ = drains.send(in_flight);
        });
    let running = run(builder);
    let (_, call) = node.unary::<v1::RegisterRequest>("register").await;
    call.answer(v1::RegisterResponse::default());
    let joined = v1::JoinGroupResponse {
        ack_timeout_ms: LONG_MS,
        ..v1::JoinGroupResponse::default()
    };
    let (mut heartbeats, mut is_settled) = (0, false);
    loop {
        let call = node.call().await;
        match call.rpc() {
            "join_group" => call.answer(joined),
            "take_records" => call.answer(delivery("7-0")),
            "heartbeat" if call.decode::<v1::HeartbeatRequest>().current_load == 0 => {
                call.answer(v1::HeartbeatResponse::default());
            }
            "heartbeat" => {
                call.answer(v1::HeartbeatResponse {
                    status: v1::WorkerStatus::Draining.into(),
                });
                heartbeats += 1;
                if heartbeats == 3 {
                    open.notify_one();
                }
            }
            "ack_records" => {
                call.answer(v1::AckRecordsResponse { acked_count: 1 });
                is_settled = true;
            }
            "leave_group" => {
                call.answer(v1::LeaveGroupResponse { left: true });
                break;
            }
            other => panic!("expected no call of {other}"),
        }
    }
    assert!(is_settled, "its record was acknowledged before it left");
    assert_eq!(drain.await, Ok(1));
    let (_, call) = node.unary::<v1::DeregisterRequest>("deregister").await;
    call.answer(v1::DeregisterResponse::default());
    running.ended.await.expect("no panic").expect("a good end");
}

/// The registry should show that the worker drains.
async fn expect_drain(node: &mut FakeNode) {
    let (drain, call) = node.unary::<v1::DrainRequest>("drain").await;
    assert_eq!(drain.worker_id, "w1");
    assert!(
        drain.incarnation.is_some(),
        "it must not drain its own successor"
    );
    call.answer(v1::DrainResponse {});
}

async fn expect_farewell(node: &mut FakeNode) {
    let (_, call) = node.unary::<v1::LeaveGroupRequest>("leave_group").await;
    call.answer(v1::LeaveGroupResponse { left: true });
    let (_, call) = node.unary::<v1::DeregisterRequest>("deregister").await;
    call.answer(v1::DeregisterResponse::default());
}
