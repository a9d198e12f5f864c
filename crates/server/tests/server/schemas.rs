//! Input schemas (W4) and what takes precedence over them (W20).

use crate::node::{APPROVAL, Node, refused, start_of};
use flotilla_api::v1;
use tonic::Code;

fn with_schema(required: &str) -> String {
    let schema = format!("input: {{type: object, required: [{required}]}}\nstart:");
    APPROVAL.replace("start:", &schema)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_must_satisfy_the_latest_schema() {
    let node = Node::start().await;
    node.create(&with_schema("id")).await;
    let status = node.try_run(start_of("approval", "{}")).await.unwrap_err();
    assert!(
        status.message().contains("\"id\" is a required property"),
        "{status}"
    );
    let invalid = (Code::FailedPrecondition, "input_invalid".to_owned());
    assert_eq!(refused::<()>(Err(status)), invalid);
    assert!(
        node.try_run(start_of("approval", r#"{"id":1}"#))
            .await
            .is_ok()
    );

    node.create(&with_schema("id, name")).await;
    assert_eq!(
        refused(node.try_run(start_of("approval", r#"{"id":1}"#)).await),
        invalid
    );
    assert!(
        node.try_run(start_of("approval", r#"{"id":1,"name":"a"}"#))
            .await
            .is_ok()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_wins_over_an_input_that_the_schema_refuses() {
    let node = Node::start().await;
    node.create(&with_schema("id")).await;
    let keyed = |input: &str| v1::StartRunRequest {
        idempotency_key: "k".to_owned(),
        ..start_of("approval", input)
    };
    assert_eq!(refused(node.try_run(keyed("{}")).await).1, "input_invalid");
    let first = node.run(keyed(r#"{"id":1}"#)).await;
    let again = node.run(keyed("{}")).await;
    assert_eq!(
        again,
        v1::StartRunResponse {
            existing: true,
            existing_reason: v1::ExistingReason::IdempotencyKey.into(),
            ..first
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_repeated_finds_its_run_although_the_schema_has_become_stricter() {
    let node = Node::start().await;
    node.create(&with_schema("id")).await;
    let drawn = |input: &str| v1::StartRunRequest {
        request_id: vec![7; 16].into(),
        ..start_of("approval", input)
    };
    let first = node.run(drawn(r#"{"id":1}"#)).await;
    node.create(&with_schema("id, name")).await;
    assert_eq!(node.run(drawn(r#"{"id":1}"#)).await, first);
    // Another request with the same id is a conflict.
    assert_eq!(
        refused(node.try_run(drawn(r#"{"id":2}"#)).await),
        (Code::Aborted, "request_id_reused".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_wins_over_an_input_that_only_the_next_schema_refuses() {
    let node = Node::start().await;
    node.create(&with_schema("id")).await;
    let keyed = || v1::StartRunRequest {
        idempotency_key: "k".to_owned(),
        ..start_of("approval", r#"{"id":1}"#)
    };
    let first = node.run(keyed()).await;
    node.create(&with_schema("id, name")).await;
    let again = node.run(keyed()).await;
    assert!(again.existing);
    assert_eq!(again.run_id, first.run_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_required_key_must_be_given() {
    let node = Node::start().await;
    node.create(&APPROVAL.replace("start:", "idempotency: required\nstart:"))
        .await;
    let missing = node.try_run(start_of("approval", "")).await;
    let expected = (
        Code::FailedPrecondition,
        "idempotency_key_missing".to_owned(),
    );
    assert_eq!(refused(missing), expected);
}
