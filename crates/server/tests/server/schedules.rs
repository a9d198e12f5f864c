//! Schedules: they fire while a node leads, and can be read.

use crate::node::{APPROVAL, Node, refused};
use crate::wait::until;
use flotilla_api::v1;
use tonic::Code;

/// Its runs stay open, so the third firing finds two of them.
fn scheduled(schedule: &str) -> String {
    APPROVAL.replace("start:", &format!("schedule: {schedule}\nstart:"))
}

async fn schedule(node: &Node) -> v1::Schedule {
    let found = node.workflows().get_schedule(request("approval")).await;
    found.unwrap().into_inner()
}

fn request(workflow: &str) -> v1::GetScheduleRequest {
    v1::GetScheduleRequest {
        workflow: workflow.to_owned(),
        ..Default::default()
    }
}

async fn runs(node: &Node) -> Vec<v1::RunRow> {
    let request = v1::ListRunsRequest::default();
    let listed = node.workflows().list_runs(request).await.unwrap();
    listed.into_inner().items
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interval_fires_until_so_many_runs_are_open_and_then_skips() {
    let node = Node::start().await;
    let source = scheduled("{interval: 50, max_concurrent: 2, input: '{\"by\": \"clock\"}'}");
    node.create(&source).await;
    let shown = until("a firing to be skipped", async || {
        Some(schedule(&node).await).filter(|shown| shown.skipped_count > 0)
    })
    .await;
    assert_eq!(shown.state(), v1::ScheduleState::Active);
    assert_eq!((shown.interval_ms, shown.max_concurrent), (Some(50), 2));
    assert_eq!((shown.open_run_count, shown.fired_count), (2, 2));
    assert!(shown.last_skipped_at_ms > shown.last_fired_at_ms);
    assert_eq!(shown.next_at_ms.len(), 5);
    assert!(
        shown
            .next_at_ms
            .windows(2)
            .all(|pair| pair[1] - pair[0] == 50)
    );

    let rows = runs(&node).await;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.triggered_by == "schedule"));
    assert_eq!(shown.last_run_id, rows[0].run_id);
    let run = node.status(&rows[0].run_id).await;
    assert_eq!(run.input.as_ref(), br#"{"by":"clock"}"#);
    // An end makes room for a firing.
    node.signal(&rows[0].run_id, "{}").await.unwrap();
    while schedule(&node).await.fired_count == 2 {}
    assert_eq!(runs(&node).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_stands_still_while_its_workflow_is_disabled() {
    let node = Node::start().await;
    node.create(&scheduled(
        "{cron: \"0 0 1 1 *\", timezone: Europe/Paris, paused: true}",
    ))
    .await;
    let shown = schedule(&node).await;
    assert_eq!(shown.state(), v1::ScheduleState::Paused);
    assert_eq!((shown.next_at_ms, shown.last_fired_at_ms), (vec![], None));
    let enable = async || {
        let request = v1::EnableWorkflowRequest {
            name: "approval".to_owned(),
            ..Default::default()
        };
        node.workflows().enable_workflow(request).await.unwrap();
        schedule(&node).await
    };
    let active = enable().await;
    assert_eq!(active.state(), v1::ScheduleState::Active);
    assert_eq!(
        (
            active.cron.as_str(),
            active.timezone.as_str(),
            active.interval_ms
        ),
        ("0 0 1 1 *", "Europe/Paris", None)
    );
    assert_eq!(active.next_at_ms.len(), 5);
    let request = v1::DisableWorkflowRequest {
        name: "approval".to_owned(),
        ..Default::default()
    };
    node.workflows().disable_workflow(request).await.unwrap();
    let disabled = schedule(&node).await;
    assert_eq!(disabled.state(), v1::ScheduleState::Disabled);
    assert!(disabled.next_at_ms.is_empty());
    assert_eq!(enable().await.next_at_ms, active.next_at_ms);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_schedule_says_so() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let found = async |workflow| node.workflows().get_schedule(request(workflow)).await;
    assert_eq!(
        refused(found("approval").await),
        (Code::NotFound, "schedule_not_found".to_owned())
    );
    assert_eq!(
        refused(found("other").await),
        (Code::NotFound, "workflow_not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_continues_after_a_restart_of_the_node() {
    let node = Node::start().await;
    node.create(&scheduled("{interval: 50, max_concurrent: 1000}"))
        .await;
    while schedule(&node).await.fired_count == 0 {}
    let node = node.restart().await;
    let before = schedule(&node).await.fired_count;
    while schedule(&node).await.fired_count <= before {}
}
