//! Triggers: they start runs while a node leads, and can be read.

use crate::node::{APPROVAL, Node};
use crate::streams::append;
use crate::wait::until;
use flotilla_api::v1;

/// Its runs stay open.
fn triggered(name: &str, rest: &str) -> String {
    let head = format!("trigger: {{stream: orders{rest}}}\nstart:");
    APPROVAL
        .replace("start:", &head)
        .replace("name: approval", &format!("name: {name}"))
}

async fn trigger(node: &Node, workflow: &str) -> v1::Trigger {
    let request = v1::GetWorkflowRequest {
        name: workflow.to_owned(),
        ..Default::default()
    };
    let workflow = node.workflows().get_workflow(request).await.unwrap();
    workflow.into_inner().triggers.remove(0)
}

/// Waits until the trigger satisfies the condition, and returns it.
async fn reached(
    node: &Node,
    workflow: &str,
    is_reached: impl Fn(&v1::Trigger) -> bool,
) -> v1::Trigger {
    until("the trigger to get there", async || {
        Some(trigger(node, workflow).await).filter(&is_reached)
    })
    .await
}

/// The inputs of a workflow's runs, the oldest first.
async fn inputs(node: &Node, workflow: &str) -> Vec<String> {
    let request = v1::ListRunsRequest {
        workflow: workflow.to_owned(),
        ..Default::default()
    };
    let listed = node.workflows().list_runs(request).await.unwrap();
    let mut inputs = Vec::new();
    for row in listed.into_inner().items.into_iter().rev() {
        assert_eq!(row.triggered_by, "trigger");
        let run = node.status(&row.run_id).await;
        inputs.push(String::from_utf8(run.input.into()).unwrap());
    }
    inputs
}

async fn set_enabled(node: &Node, workflow: &str, is_enabled: bool) {
    let (name, namespace) = (workflow.to_owned(), String::new());
    if is_enabled {
        let request = v1::EnableWorkflowRequest {
            name,
            namespace,
            ..Default::default()
        };
        node.workflows().enable_workflow(request).await.unwrap();
    } else {
        let request = v1::DisableWorkflowRequest {
            name,
            namespace,
            ..Default::default()
        };
        node.workflows().disable_workflow(request).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_begins_when_its_stream_appears() {
    let node = Node::start().await;
    let created = node.create(&triggered("follow", "")).await;
    let codes = created.findings.iter().map(|finding| finding.code.as_str());
    assert!(codes.eq(["E507"]), "{:?}", created.findings);
    let shown = trigger(&node, "follow").await;
    assert_eq!(shown.state(), v1::TriggerState::NoStream);
    assert_eq!(shown.last_fired_at_ms, None);

    append(&node, "orders", &[r#"{"id": 1}"#, "two", ""]).await;
    let shown = reached(&node, "follow", |shown| shown.run_count == 3).await;
    assert_eq!(shown.state(), v1::TriggerState::Active);
    assert_eq!(shown.mode(), v1::GroupMode::Shared);
    assert_eq!(
        (shown.stream.as_str(), shown.namespace.as_str()),
        ("orders", "default")
    );
    assert_eq!(shown.consumer_group, "wf-follow");
    assert_eq!((shown.lag, shown.record_count), (0, 3));
    assert!(shown.last_fired_at_ms.is_some());
    assert_eq!(
        inputs(&node, "follow").await,
        [r#"{"id": 1}"#, r#""two""#, r#""""#]
    );
    let again = node.create(&triggered("follow", "")).await;
    assert_eq!(again.findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_go_together_and_a_rest_goes_when_it_has_waited() {
    let node = Node::start().await;
    let batches = ", batch_size: 3, batch_timeout_ms: 200";
    node.create(&triggered("pack", batches)).await;
    append(&node, "orders", &["1", "2", "3", "four", "5", "6", "7"]).await;
    let shown = reached(&node, "pack", |shown| shown.run_count == 3).await;
    assert_eq!((shown.record_count, shown.lag), (7, 0));
    assert_eq!((shown.batch_size, shown.batch_timeout_ms), (3, 200));
    assert_eq!(
        inputs(&node, "pack").await,
        ["[1,2,3]", r#"["four",5,6]"#, "[7]"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_the_schema_refuses_goes_to_the_dead_letter_stream() {
    let node = Node::start().await;
    let source =
        triggered("strict", "").replace("start:", "input: {type: object, required: [id]}\nstart:");
    node.create(&source).await;
    append(&node, "orders", &[r#"{"id":1}"#, "{}", r#"{"id":2}"#]).await;
    let shown = reached(&node, "strict", |shown| {
        shown.lag == 0 && shown.run_count > 0
    })
    .await;
    assert_eq!((shown.run_count, shown.refused_count), (2, 1));
    assert_eq!(
        inputs(&node, "strict").await,
        [r#"{"id":1}"#, r#"{"id":2}"#]
    );
    let request = v1::ReadRecordsRequest {
        stream: "orders.wf-strict.dlq".to_owned(),
        ..Default::default()
    };
    let buried = node.streams().read_records(request).await.unwrap();
    let buried = buried.into_inner().records;
    assert_eq!(buried.len(), 1);
    assert_eq!(buried[0].payload.as_ref(), b"{}");
    let told = buried[0].headers.values();
    let is_reason = |value: &String| value.contains("\"id\" is a required property");
    assert!(told.into_iter().any(is_reason), "{:?}", buried[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_stands_still_while_its_workflow_is_disabled() {
    let node = Node::start().await;
    node.create(&triggered("still", "")).await;
    node.create(&triggered("other", "")).await;
    set_enabled(&node, "still", false).await;
    append(&node, "orders", &["1", "2"]).await;
    // The other trigger has the same records to fire: once it has fired, this one would have.
    reached(&node, "other", |shown| shown.run_count == 2).await;
    let shown = trigger(&node, "still").await;
    assert_eq!(shown.state(), v1::TriggerState::Disabled);
    assert_eq!((shown.lag, shown.run_count), (2, 0));
    set_enabled(&node, "still", true).await;
    let shown = reached(&node, "still", |shown| shown.run_count == 2).await;
    assert_eq!(shown.state(), v1::TriggerState::Active);
    assert_eq!(inputs(&node, "still").await, ["1", "2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_continues_after_a_restart_of_the_node() {
    let node = Node::start().await;
    node.create(&triggered("follow", "")).await;
    let payloads: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
    append(&node, "orders", &payloads).await;
    let node = node.restart().await;
    reached(&node, "follow", |shown| shown.run_count == 50).await;
    append(&node, "orders", &["50"]).await;
    reached(&node, "follow", |shown| shown.run_count == 51).await;
    let numbers: Vec<String> = (0..51).map(|number| number.to_string()).collect();
    assert_eq!(inputs(&node, "follow").await, numbers);
}
