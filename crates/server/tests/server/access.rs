//! Who may call, as clients see it (X15, X22).

use crate::node::{APPROVAL, Node, refused, start_of};
use flotilla_api::token::TokenSecret;
use flotilla_api::v1;
use flotilla_server::AccessMode;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};
use tonic::{Code, Request, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use v1::access_service_client::AccessServiceClient;

/// Shows a token with the request.
pub(crate) fn with_token<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

/// Creates a token of the cluster, and returns it with its id.
pub(crate) async fn create_token(node: &Node, role: &str, ttl_ms: Option<u64>) -> (String, String) {
    let secret = TokenSecret::draw();
    let request = v1::CreateClusterTokenRequest {
        name: "a token".to_owned(),
        grants: vec![role.to_owned()],
        ttl_ms,
        secret_sha256: secret.sha256(),
        ..Default::default()
    };
    let mut access = AccessServiceClient::new(node.channel());
    let created = access.create_cluster_token(request).await.unwrap();
    let id = created.into_inner().id;
    (secret.into_token(&id).expose().to_owned(), id)
}

/// Watches a run with its token, until the run waits.
async fn watch(node: &Node, run_id: &str, token: Option<&str>) -> Streaming<v1::WatchRunResponse> {
    let message = v1::WatchRunRequest {
        run_id: run_id.to_owned(),
        after_seq: node.status(run_id).await.history_event_count,
        ..Default::default()
    };
    let request = match token {
        Some(token) => with_token(message, token),
        None => Request::new(message),
    };
    let watched = node.workflows().watch_run(request).await;
    let mut updates = watched.unwrap().into_inner();
    assert!(updates.message().await.unwrap().is_some());
    updates
}

/// How a watch ends.
async fn end(mut updates: Streaming<v1::WatchRunResponse>) -> (Code, String) {
    refused(updates.message().await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_lasts_ends_with_the_credential_of_its_caller() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let run_id = node.run(start_of("approval", "")).await.run_id;
    let (viewer, viewer_id) = create_token(&node, "viewer@*", None).await;
    let (short, _) = create_token(&node, "viewer@*", Some(1_500)).await;
    let (root, _) = create_token(&node, "cluster-admin", None).await;
    let revoked = watch(&node, &run_id, Some(&viewer)).await;
    let expired = watch(&node, &run_id, Some(&short)).await;
    let shut_out = watch(&node, &run_id, None).await;
    let mut lasting = watch(&node, &run_id, Some(&root)).await;
    let mut access = AccessServiceClient::new(node.channel());
    let request = v1::RevokeClusterTokenRequest {
        id: viewer_id,
        ..Default::default()
    };
    access.revoke_cluster_token(request).await.unwrap();
    let ended = |reason: &str| (Code::Unauthenticated, reason.to_owned());
    assert_eq!(end(revoked).await, ended("credential_revoked"));
    assert_eq!(end(expired).await, ended("credential_expired"));
    let close = v1::SetAccessRequest {
        mode: v1::AccessMode::Closed.into(),
        ..Default::default()
    };
    access.set_access(with_token(close, &root)).await.unwrap();
    assert_eq!(end(shut_out).await, ended("credential_missing"));
    // The other watches continue.
    let signal = v1::SignalRunRequest {
        run_id,
        r#type: "decision".to_owned(),
        signal_id: "signal".to_owned(),
        ..Default::default()
    };
    let signalled = node.workflows().signal_run(with_token(signal, &root)).await;
    signalled.unwrap();
    assert!(lasting.message().await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_client_calls_on_behalf_of_another() {
    let node = Node::start_with(|config| config.access = AccessMode::Closed).await;
    let state_actor = |metadata: &mut MetadataMap| {
        // The encoded actor of what the cluster itself does.
        let system = BinaryMetadataValue::from_bytes(&[0]);
        metadata.insert_bin("flo-actor-bin", system);
    };
    let mut read = Request::new(v1::GetKeyRequest {
        key: "k".to_owned(),
        ..Default::default()
    });
    state_actor(read.metadata_mut());
    let missing = (Code::Unauthenticated, "credential_missing".to_owned());
    assert_eq!(refused(node.keys().get_key(read).await), missing);
    let mut poll = Request::new(v1::AwaitRequest {
        worker_id: "w".to_owned(),
        actions: vec!["a".to_owned()],
        ..Default::default()
    });
    state_actor(poll.metadata_mut());
    assert_eq!(refused::<_>(node.workers().r#await(poll).await), missing);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_cluster_describes_its_services_only_to_callers_with_a_credential() {
    let node = Node::start().await;
    let (root, _) = create_token(&node, "cluster-admin", None).await;
    let (viewer, _) = create_token(&node, "viewer@*", None).await;
    let describe = async |token: Option<&str>| {
        let message = ServerReflectionRequest {
            message_request: Some(MessageRequest::ListServices(String::new())),
            ..Default::default()
        };
        let messages = tokio_stream::iter([message]);
        let request = match token {
            Some(token) => with_token(messages, token),
            None => Request::new(messages),
        };
        let mut client = ServerReflectionClient::new(node.channel());
        let described = client.server_reflection_info(request).await?;
        described.into_inner().message().await
    };
    assert!(describe(None).await.unwrap().is_some(), "it is open");
    let close = v1::SetAccessRequest {
        mode: v1::AccessMode::Closed.into(),
        ..Default::default()
    };
    let mut access = AccessServiceClient::new(node.channel());
    access.set_access(with_token(close, &root)).await.unwrap();
    let refusal = refused(describe(None).await);
    let expected = (Code::Unauthenticated, "credential_missing".to_owned());
    assert_eq!(refusal, expected);
    assert!(describe(Some(&viewer)).await.unwrap().is_some());
    let mut health = HealthClient::new(node.channel());
    let checked = health.check(HealthCheckRequest::default()).await;
    assert!(checked.is_ok(), "everyone may probe: {checked:?}");
}
