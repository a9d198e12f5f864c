//! Watching runs.

use crate::node::{APPROVAL, Node, refused, start_of};
use crate::wait::until;
use crate::web::get;
use flotilla_api::v1;
use flotilla_api::v1::watch_run_response::Update;
use tonic::{Code, Status, Streaming};

async fn watch(
    node: &Node,
    run_id: &str,
    after_seq: u64,
) -> Result<Streaming<v1::WatchRunResponse>, Status> {
    let request = v1::WatchRunRequest {
        run_id: run_id.to_owned(),
        after_seq,
        ..Default::default()
    };
    Ok(node.workflows().watch_run(request).await?.into_inner())
}

/// The next update as text: an event's number, or a status and its position in the history.
async fn next(stream: &mut Streaming<v1::WatchRunResponse>) -> String {
    match stream.message().await.unwrap().unwrap().update.unwrap() {
        Update::Event(event) => format!("event {}", event.seq),
        Update::Status(status) => {
            format!("{} at {}", status.status().as_str_name(), status.seq)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_sees_every_event_once_and_each_status_behind_its_events() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let run_id = node.run(start_of("approval", "")).await.run_id;
    let waiting = node.status(&run_id).await.history_event_count;
    let mut stream = watch(&node, &run_id, 0).await.unwrap();
    for seq in 1..=waiting {
        assert_eq!(next(&mut stream).await, format!("event {seq}"));
    }
    assert_eq!(
        next(&mut stream).await,
        format!("RUN_STATUS_WAITING at {waiting}")
    );
    node.signal(&run_id, r#"{"ok":1}"#).await.unwrap();
    let ended = node.status(&run_id).await.history_event_count;
    for seq in waiting + 1..=ended {
        assert_eq!(next(&mut stream).await, format!("event {seq}"));
    }
    assert_eq!(
        next(&mut stream).await,
        format!("RUN_STATUS_COMPLETED at {ended}")
    );
    assert_eq!(stream.message().await.unwrap(), None);

    let mut resumed = watch(&node, &run_id, ended - 1).await.unwrap();
    assert_eq!(next(&mut resumed).await, format!("event {ended}"));
    let last = resumed.message().await.unwrap().unwrap().update.unwrap();
    let Update::Status(status) = last else {
        panic!("a status ends the stream")
    };
    assert_eq!(status.terminal.as_deref(), Some("flo.Completed"));
    assert_eq!(status.output.as_deref(), Some(r#"{"ok":1}"#.as_bytes()));
    assert_eq!(resumed.message().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_of_a_retried_run_sees_the_end_of_the_last_attempt() {
    const RETRIED: &str = "kind: Workflow\nname: retried\nversion: \"1\"\n\
                           retryRun: {max_attempts: 3, initial_delay_ms: 50, on_failure: true}\n\
                           steps: [{name: a, run: \"@actions/missing\"}]\n";
    let node = Node::start().await;
    node.create(RETRIED).await;
    let run_id = node.run(start_of("retried", "")).await.run_id;
    let mut stream = watch(&node, &run_id, 0).await.unwrap();
    let mut seq = 0;
    let end = loop {
        match stream.message().await.unwrap().unwrap().update.unwrap() {
            Update::Event(event) => seq = event.seq,
            Update::Status(status) if status.terminal.is_some() => break status,
            Update::Status(_) => {}
        }
    };
    assert_eq!(stream.message().await.unwrap(), None);
    assert_eq!((end.status(), end.seq), (v1::RunStatus::Failed, seq));
    let detail = end.detail.unwrap_or_default();
    assert!(!detail.contains("retried as"), "{detail}");
    let first = node.status(&run_id).await;
    let last = node.status(&first.latest_attempt.unwrap()).await;
    assert_eq!((first.run_attempt, last.run_attempt), (1, 3));
    assert_eq!(last.next_attempt, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_reaches_the_watcher_whole() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let run_id = node.run(start_of("approval", "")).await.run_id;
    let request = v1::SignalRunRequest {
        run_id: run_id.clone(),
        r#type: "other".to_owned(),
        ..Default::default()
    };
    for _ in 0..250 {
        node.workflows().signal_run(request.clone()).await.unwrap();
    }
    let events_count = node.status(&run_id).await.history_event_count;
    assert!(events_count > 250);
    let mut stream = watch(&node, &run_id, 0).await.unwrap();
    for seq in 1..=events_count {
        assert_eq!(next(&mut stream).await, format!("event {seq}"));
    }
    assert_eq!(
        next(&mut stream).await,
        format!("RUN_STATUS_WAITING at {events_count}")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_run_cannot_be_watched() {
    let node = Node::start().await;
    let missing = watch(&node, "wfrun-1", 0).await;
    assert_eq!(
        refused(missing),
        (Code::NotFound, "run_not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_tells_its_watchers_to_go_elsewhere() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let run_id = node.run(start_of("approval", "")).await.run_id;
    let waiting = node.status(&run_id).await.history_event_count;
    let mut stream = watch(&node, &run_id, waiting).await.unwrap();
    assert_eq!(
        next(&mut stream).await,
        format!("RUN_STATUS_WAITING at {waiting}")
    );
    let (result, _data) = node.stop().await;
    result.unwrap();
    assert_eq!(
        refused(stream.message().await),
        (Code::Unavailable, "shutting_down".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_waits_says_how_the_run_ended() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let request = v1::StartRunRequest {
        run_id: "order-1".to_owned(),
        wait: true,
        ..start_of("approval", "")
    };
    let mut workflows = node.workflows();
    let starting = tokio::spawn(async move { workflows.start_run(request).await });
    // The run exists before its start returns.
    let signaled = async {
        while node.signal("order-1", r#"{"ok":1}"#).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    signaled.await;
    let started = starting.await.unwrap().unwrap().into_inner();
    let end = started.end.expect("the run has ended");
    assert_eq!(end.status(), v1::RunStatus::Completed);
    assert_eq!(end.terminal.as_deref(), Some("flo.Completed"));
    assert_eq!(end.output.as_deref(), Some(r#"{"ok":1}"#.as_bytes()));
    let status = node.status("order-1").await;
    assert_eq!(end.seq, status.history_event_count);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_waits_is_answered_by_its_deadline_though_the_run_is_open() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let mut request = tonic::Request::new(v1::StartRunRequest {
        wait: true,
        ..start_of("approval", "")
    });
    request.set_timeout(std::time::Duration::from_secs(1));
    let started = node
        .workflows()
        .start_run(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(started.end, None);
    let status = node.status(&started.run_id).await;
    assert_eq!(status.status(), v1::RunStatus::Waiting);
}

/// Reads of runs for callers that watch them.
async fn watch_reads(node: &Node) -> u64 {
    let (_, page) = get(&node.http_address, "/metrics").await;
    let mut lines = page.lines();
    let line = lines.find_map(|line| line.strip_prefix("flotilla_watch_reads_total "));
    line.expect("the metric is exposed").trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_watchers_of_a_run_share_one_read_per_change() {
    const WATCHERS: u64 = 20;
    const CHANGES: u64 = 30;
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let run_id = node.run(start_of("approval", "")).await.run_id;
    let waiting = node.status(&run_id).await.history_event_count;
    let mut streams = Vec::new();
    for _ in 0..WATCHERS {
        let mut stream = watch(&node, &run_id, waiting).await.unwrap();
        let status = format!("RUN_STATUS_WAITING at {waiting}");
        assert_eq!(next(&mut stream).await, status);
        streams.push(stream);
    }
    let before = watch_reads(&node).await;
    for change in 1..=CHANGES {
        let request = v1::SignalRunRequest {
            run_id: run_id.clone(),
            r#type: "other".to_owned(),
            ..Default::default()
        };
        node.workflows().signal_run(request).await.unwrap();
        for stream in &mut streams {
            assert_eq!(next(stream).await, format!("event {}", waiting + change));
        }
    }
    // For a moment, the node sends the same page again.
    let reads = until("a page that is newer", async || {
        let reads = watch_reads(&node).await - before;
        (reads > 0).then_some(reads)
    })
    .await;
    assert!((1..=CHANGES).contains(&reads), "{reads} reads");
}
