//! Runs: starting, signaling, reading and cancelling them, and the refusals.

use crate::node::{APPROVAL, Node, refused, start_of};
use flotilla_api::v1;
use std::time::{SystemTime, UNIX_EPOCH};
use tonic::Code;
use tonic_types::StatusExt;

fn cancel_of(run_id: &str) -> v1::CancelRunRequest {
    v1::CancelRunRequest {
        run_id: run_id.to_owned(),
        reason: "no need".to_owned(),
        ..Default::default()
    }
}

async fn history(node: &Node, run_id: &str) -> Vec<v1::Event> {
    let request = v1::GetHistoryRequest {
        run_id: run_id.to_owned(),
        ..Default::default()
    };
    node.workflows()
        .get_history(request)
        .await
        .unwrap()
        .into_inner()
        .events
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_its_signal_and_ends_with_it() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let started = node.run(start_of("approval", r#"{"order": 7}"#)).await;
    assert_eq!(
        (started.version.as_str(), started.revision, started.existing),
        ("1.0.0", 1, false)
    );
    let run = node.status(&started.run_id).await;
    assert_eq!(run.status(), v1::RunStatus::Waiting);
    assert_eq!(run.current_steps[0].waiting_for(), v1::WaitingFor::Signal);
    assert_eq!(
        (run.input.as_ref(), run.output),
        (r#"{"order": 7}"#.as_bytes(), None)
    );
    assert_eq!(run.steps["start"].outcome, None);

    assert!(
        !node
            .signal(&started.run_id, r#"{"ok":true}"#)
            .await
            .unwrap()
            .existing
    );
    let run = node.status(&started.run_id).await;
    assert_eq!(run.status(), v1::RunStatus::Completed);
    assert_eq!(run.terminal.as_deref(), Some("flo.Completed"));
    assert_eq!(run.output.as_deref(), Some(r#"{"ok":true}"#.as_bytes()));
    assert_eq!(run.steps["start"].outcome.as_deref(), Some("success"));
    // A repeated signal gets the same response even after the end (W19); another one is refused.
    assert!(
        node.signal(&started.run_id, r#"{"ok":true}"#)
            .await
            .unwrap()
            .existing
    );
    let late = node.signal(&started.run_id, "1").await;
    assert_eq!(
        refused(late),
        (Code::FailedPrecondition, "run_ended".to_owned())
    );

    let events = history(&node, &started.run_id).await;
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=run.history_event_count).collect::<Vec<_>>());
    assert_eq!(events.first().unwrap().r#type, "workflow_started");
    assert_eq!(events.last().unwrap().r#type, "workflow_completed");
    assert!(
        events
            .iter()
            .all(|event| event.node_id == 1 && event.raft_index > 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_is_read_in_parts() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let run_id = node.run(start_of("approval", "")).await.run_id;
    let whole = history(&node, &run_id).await;
    let request = v1::GetHistoryRequest {
        run_id,
        after_seq: 1,
        limit: 1,
        ..Default::default()
    };
    let part = node
        .workflows()
        .get_history(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(part.events, whole[1..2]);
    assert!(part.has_more);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_ends_a_run_once() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let run_id = node.run(start_of("approval", "")).await.run_id;
    node.workflows()
        .cancel_run(cancel_of(&run_id))
        .await
        .unwrap();
    let run = node.status(&run_id).await;
    assert_eq!(run.status(), v1::RunStatus::Cancelled);
    let again = node.workflows().cancel_run(cancel_of(&run_id)).await;
    assert_eq!(
        refused(again),
        (Code::FailedPrecondition, "run_ended".to_owned())
    );
    let missing = node.workflows().cancel_run(cancel_of("wfrun-99")).await;
    assert_eq!(
        refused(missing),
        (Code::NotFound, "run_not_found".to_owned())
    );
    // The same request again gets the same response.
    let other = node.run(start_of("approval", "")).await.run_id;
    let request = v1::CancelRunRequest {
        request_id: vec![7; 16].into(),
        ..cancel_of(&other)
    };
    node.workflows().cancel_run(request.clone()).await.unwrap();
    node.workflows().cancel_run(request.clone()).await.unwrap();
    let reused = v1::CancelRunRequest { run_id, ..request };
    let reused = node.workflows().cancel_run(reused).await;
    assert_eq!(
        refused(reused),
        (Code::Aborted, "request_id_reused".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_or_a_request_id_makes_one_run_of_many_starts() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let keyed = v1::StartRunRequest {
        idempotency_key: "order-7".to_owned(),
        ..start_of("approval", r#"{"a":1}"#)
    };
    let first = node.run(keyed.clone()).await;
    let again = node
        .run(v1::StartRunRequest {
            input: "2".into(),
            ..keyed
        })
        .await;
    assert_eq!((again.run_id, again.existing), (first.run_id.clone(), true));
    let run = node.status(&first.run_id).await;
    assert_eq!(run.idempotency_key.as_deref(), Some("order-7"));

    let drawn = v1::StartRunRequest {
        request_id: vec![1; 16].into(),
        ..start_of("approval", "")
    };
    let first = node.run(drawn.clone()).await;
    assert_eq!(node.run(drawn).await, first);
    assert_ne!(
        node.run(start_of("approval", "")).await.run_id,
        first.run_id
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_may_have_an_id_of_its_callers_choice() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let chosen = |run_id: &str| v1::StartRunRequest {
        run_id: run_id.to_owned(),
        ..start_of("approval", "")
    };
    assert_eq!(node.run(chosen("order-7")).await.run_id, "order-7");
    let taken = node.try_run(chosen("order-7")).await;
    assert_eq!(
        refused(taken),
        (Code::AlreadyExists, "run_id_in_use".to_owned())
    );
    let reserved = node.try_run(chosen("wfrun-7")).await;
    assert_eq!(
        refused(reserved),
        (Code::InvalidArgument, "run_id_reserved".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_starts_are_refused_and_nothing_is_started() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let invalid = (Code::InvalidArgument, "invalid_argument".to_owned());
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    assert_eq!(
        refused(node.try_run(start_of("approval", &large)).await),
        (Code::InvalidArgument, "too_large".to_owned())
    );
    for input in ["{nope}", &"[".repeat(1_000)] {
        assert_eq!(
            refused(node.try_run(start_of("approval", input)).await),
            invalid
        );
    }
    assert_eq!(refused(node.try_run(start_of("a:b", "")).await), invalid);
    let request = v1::StartRunRequest {
        request_id: vec![1].into(),
        ..start_of("approval", "")
    };
    assert_eq!(refused(node.try_run(request).await), invalid);
    let request = v1::StartRunRequest {
        version: "9".to_owned(),
        ..start_of("approval", "")
    };
    let unknown = node.try_run(request).await;
    assert_eq!(
        refused(unknown),
        (Code::NotFound, "version_not_found".to_owned())
    );
    let unknown = node.try_run(start_of("other", "")).await;
    assert_eq!(
        refused(unknown),
        (Code::NotFound, "workflow_not_found".to_owned())
    );
    let listed = node
        .workflows()
        .list_runs(v1::ListRunsRequest::default())
        .await
        .unwrap();
    assert_eq!(listed.into_inner().items, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_newest_first_by_workflow_and_status() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    node.create(&APPROVAL.replace("name: approval", "name: other"))
        .await;
    let first = node.run(start_of("approval", "")).await.run_id;
    let second = node.run(start_of("approval", "")).await.run_id;
    node.run(start_of("other", "")).await;
    node.workflows()
        .cancel_run(cancel_of(&first))
        .await
        .unwrap();
    let list = async |request: v1::ListRunsRequest| {
        let page = node
            .workflows()
            .list_runs(request)
            .await
            .unwrap()
            .into_inner();
        page.items
            .into_iter()
            .map(|row| row.run_id)
            .collect::<Vec<_>>()
    };
    let of_workflow = || v1::ListRunsRequest {
        workflow: "approval".to_owned(),
        ..Default::default()
    };
    assert_eq!(list(of_workflow()).await, [second.clone(), first.clone()]);
    let status = v1::RunStatus::Cancelled.into();
    assert_eq!(
        list(v1::ListRunsRequest {
            status,
            ..of_workflow()
        })
        .await,
        [first]
    );
    assert_eq!(
        list(v1::ListRunsRequest {
            limit: 1,
            stale: true,
            ..of_workflow()
        })
        .await,
        [second]
    );
    let far = v1::ListRunsRequest {
        limit: 1_001,
        ..of_workflow()
    };
    assert_eq!(
        refused(node.workflows().list_runs(far).await).0,
        Code::InvalidArgument
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_found_by_what_their_workflow_makes_of_their_input() {
    let node = Node::start().await;
    let attributes = "searchAttributes: [{name: total, type: number, from: input.total}]\nstart:";
    node.create(&APPROVAL.replace("start:", attributes)).await;
    let small = node.run(start_of("approval", r#"{"total": 5}"#)).await;
    let large = node.run(start_of("approval", r#"{"total": 50.5}"#)).await;
    let list = async |condition: &str| {
        let request = v1::ListRunsRequest {
            r#where: condition.to_owned(),
            ..Default::default()
        };
        node.workflows().list_runs(request).await
    };
    let found = async |condition: &str| {
        let rows = list(condition).await.unwrap().into_inner().items;
        rows.into_iter().map(|row| row.run_id).collect::<Vec<_>>()
    };
    let (small, large) = (small.run_id, large.run_id);
    assert_eq!(found("total >= 5").await, [large.clone(), small.clone()]);
    assert_eq!(found("total > 5 and status = 'waiting'").await, [large]);
    assert_eq!(found("workflow != 'approval'").await, [""; 0]);
    assert_eq!(found("total < 50.5 and started_at > 1").await, [small]);

    let invalid = list("total => 5").await;
    let message = invalid.as_ref().unwrap_err().message().to_owned();
    assert!(message.contains("\n  total => 5\n        ^^"), "{message}");
    let refusal = (Code::InvalidArgument, "where_invalid".to_owned());
    assert_eq!(refused(invalid), refusal);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_survive_a_restart_of_the_node() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let run_id = node.run(start_of("approval", "")).await.run_id;
    let before = node.status(&run_id).await;
    let node = node.restart().await;
    assert_eq!(node.status(&run_id).await, before);
    node.signal(&run_id, "{}").await.unwrap();
    assert_eq!(
        node.status(&run_id).await.status(),
        v1::RunStatus::Completed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_comes_too_late_is_refused_and_says_what_time_it_is() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let now_ms = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_millis()
    };
    // Version 7 UUIDs.
    let made_at = |at_ms: u128, number: u128| at_ms << 80 | 7 << 76 | 0b10 << 62 | number;
    let start = |id: u128| v1::StartRunRequest {
        request_id: id.to_be_bytes().to_vec().into(),
        ..start_of("approval", "")
    };
    let late = start(made_at(now_ms() - 3_600_000, 1));
    let refusal = node.try_run(late.clone()).await.unwrap_err();
    let info = refusal.get_details_error_info().unwrap();
    assert_eq!(info.reason, "request_too_old");
    let cluster_ms: u128 = info.metadata["cluster_ms"].parse().unwrap();
    assert!(cluster_ms.abs_diff(now_ms()) < 60_000, "{cluster_ms}");
    assert_eq!(
        refused(node.try_run(late).await).0,
        Code::FailedPrecondition
    );
    let fresh = start(made_at(cluster_ms, 2));
    assert_eq!(node.run(fresh).await.run_id, "wfrun-1");
}
