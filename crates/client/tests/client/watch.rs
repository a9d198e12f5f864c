//! Watching a run through lost connections.

use crate::fake::{FakeNode, client, refusal};
use flotilla_api::v1;
use flotilla_api::v1::watch_run_response::Update;
use flotilla_client::{ErrorKind, WatchUpdate};
use futures::{StreamExt, TryStreamExt};
use std::time::Duration;
use tokio::join;
use tokio::time::Instant;
use tonic::Code;

fn watch() -> v1::WatchRunRequest {
    v1::WatchRunRequest {
        run_id: "r".to_owned(),
        ..v1::WatchRunRequest::default()
    }
}

fn event(seq: u64) -> v1::WatchRunResponse {
    let event = v1::Event {
        seq,
        ..v1::Event::default()
    };
    v1::WatchRunResponse {
        update: Some(Update::Event(event)),
    }
}

fn status(seq: u64, status: v1::RunStatus) -> v1::WatchRunResponse {
    let change = v1::RunStatusChange {
        seq,
        status: status.into(),
        ..v1::RunStatusChange::default()
    };
    v1::WatchRunResponse {
        update: Some(Update::Status(change)),
    }
}

/// Events by number, statuses by name.
fn shown(update: &WatchUpdate) -> String {
    match update {
        WatchUpdate::Event(event) => event.seq.to_string(),
        WatchUpdate::Status(status) => format!("{:?}", status.status()),
    }
}

#[tokio::test]
async fn a_watch_continues_at_another_node_without_gap_or_repeat() {
    let (mut first, mut second) = (FakeNode::start().await, FakeNode::start().await);
    let client = client(&[&first, &second]);
    let conversation = async {
        let call = first.watch().await;
        assert_eq!(call.request.after_seq, 0);
        for update in [event(1), event(2), status(2, v1::RunStatus::Waiting)] {
            call.updates
                .send(Ok(update))
                .await
                .expect("the watcher listens");
        }
        let gone = refusal(Code::Unavailable, "shutting_down");
        call.updates
            .send(Err(gone))
            .await
            .expect("the watcher listens");

        let call = second.watch().await;
        assert_eq!(call.request.after_seq, 2);
        // A lagging node, and repeated messages, must not confuse the watcher.
        let stale = status(1, v1::RunStatus::Running);
        let same = status(2, v1::RunStatus::Waiting);
        let end = status(3, v1::RunStatus::Completed);
        for update in [stale, same, event(2), event(3), end] {
            call.updates
                .send(Ok(update))
                .await
                .expect("the watcher listens");
        }
    };
    let updates = client
        .watch_run(watch())
        .map_ok(|update| shown(&update))
        .try_collect::<Vec<_>>();
    let (updates, ()) = join!(updates, conversation);
    assert_eq!(
        updates.expect("the run ended"),
        ["1", "2", "Waiting", "3", "Completed"]
    );
}

#[tokio::test]
async fn a_stream_that_ends_before_the_run_is_opened_again() {
    let mut node = FakeNode::start().await;
    let client = client(&[&node]);
    let conversation = async {
        let call = node.watch().await;
        call.updates
            .send(Ok(event(1)))
            .await
            .expect("the watcher listens");
        drop(call);
        let call = node.watch().await;
        assert_eq!(call.request.after_seq, 1);
        let end = status(1, v1::RunStatus::Failed);
        call.updates
            .send(Ok(end))
            .await
            .expect("the watcher listens");
    };
    let updates = client
        .watch_run(watch())
        .map_ok(|update| shown(&update))
        .try_collect::<Vec<_>>();
    let (updates, ()) = join!(updates, conversation);
    assert_eq!(updates.expect("the run ended"), ["1", "Failed"]);
}

#[tokio::test]
async fn a_run_that_is_not_there_ends_the_watch() {
    let mut node = FakeNode::start().await;
    let client = client(&[&node]);
    let conversation = async {
        let call = node.watch().await;
        let missing = refusal(Code::NotFound, "run_not_found");
        call.updates
            .send(Err(missing))
            .await
            .expect("the watcher listens");
    };
    let mut watch = client.watch_run(watch());
    let (update, ()) = join!(watch.next(), conversation);
    let error = update
        .expect("an error is an item")
        .expect_err("there is no such run");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_wait_ends_with_the_runs_last_status() {
    let mut node = FakeNode::start().await;
    let client = client(&[&node]);
    let conversation = async {
        let call = node.watch().await;
        assert_eq!(call.request.run_id, "r");
        let waiting = status(1, v1::RunStatus::Waiting);
        let end = status(2, v1::RunStatus::Failed);
        for update in [event(1), waiting, event(2), end] {
            call.updates
                .send(Ok(update))
                .await
                .expect("the watcher listens");
        }
    };
    let (end, ()) = join!(client.wait_for_run("r", None, |_| {}), conversation);
    let end = end.expect("the run ended");
    assert_eq!((end.seq, end.status()), (2, v1::RunStatus::Failed));
}

#[tokio::test]
async fn a_wait_ends_at_its_deadline_although_the_run_continues() {
    let mut node = FakeNode::start().await;
    let client = client(&[&node]);
    let (given_up, gave_up) = tokio::sync::oneshot::channel();
    let conversation = async {
        let call = node.watch().await;
        let waiting = status(1, v1::RunStatus::Waiting);
        call.updates
            .send(Ok(waiting))
            .await
            .expect("the watcher listens");
        // The stream stays open for as long as the watcher wants it.
        gave_up.await.expect("the watcher gives up");
    };
    let watching = async {
        let deadline = Instant::now() + Duration::from_millis(300);
        let waited = client.wait_for_run("r", Some(deadline), |_| {}).await;
        let error = waited.expect_err("the run has not ended");
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Retryable, "wait_timeout")
        );
        assert!(error.message().contains("still waiting"), "{error}");
        given_up.send(()).expect("the fake node still listens");
    };
    join!(watching, conversation);
}

#[tokio::test]
async fn a_wait_for_a_run_of_which_no_node_tells_ends_at_its_deadline_too() {
    let node = FakeNode::start().await;
    let client = client(&[&node]);
    let deadline = Instant::now() + Duration::from_millis(50);
    let waited = client.wait_for_run("r", Some(deadline), |_| {}).await;
    let error = waited.expect_err("no node answers");
    assert_eq!(error.code(), "wait_timeout");
    assert!(error.message().contains("no node reported"), "{error}");
}

#[tokio::test]
async fn a_start_that_waits_continues_as_a_watch_if_its_response_precedes_the_end() {
    let mut node = FakeNode::start().await;
    let client = client(&[&node]);
    let conversation = async {
        let (request, call) = node.unary::<v1::StartRunRequest>("start_run").await;
        assert!(request.wait);
        call.answer(v1::StartRunResponse {
            run_id: "r".to_owned(),
            ..v1::StartRunResponse::default()
        });
        let call = node.watch().await;
        assert_eq!(call.request.run_id, "r");
        let end = status(2, v1::RunStatus::Completed);
        call.updates
            .send(Ok(end))
            .await
            .expect("the watcher listens");
    };
    let starting = client.start_and_wait(v1::StartRunRequest::default(), None);
    let (ended, ()) = join!(starting, conversation);
    let (started, end) = ended.expect("the run ended");
    assert_eq!(started.run_id, "r");
    assert_eq!((end.seq, end.status()), (2, v1::RunStatus::Completed));
}
