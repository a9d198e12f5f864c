//! Starting, serving and stopping a node.

use crate::node::{Node, start_of};
use flotilla_api::v1;
use flotilla_server::{ConfigInvalid, Server, ServerConfig, ServerError};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

#[tokio::test(flavor = "multi_thread")]
async fn a_node_shows_the_cluster_and_names_the_leader_in_every_reply() {
    let node = Node::start().await;
    let reply = node
        .cluster()
        .get_status(v1::GetStatusRequest {})
        .await
        .unwrap();
    assert_eq!(reply.metadata().get("flo-leader").unwrap(), &node.address);
    let status = reply.into_inner();
    assert_eq!((status.leader_id, status.responding_node_id), (Some(1), 1));
    assert!(!status.cluster_id.is_empty() && status.term > 0);
    let [member] = status.nodes.try_into().unwrap();
    assert_eq!(
        (member.node_id, member.address.as_str()),
        (1, node.address.as_str())
    );
    assert_eq!(member.role(), v1::NodeRole::Leader);
    assert!(member.voter && member.healthy);

    let refusal = node.try_run(start_of("missing", "")).await.unwrap_err();
    assert_eq!(refusal.metadata().get("flo-leader").unwrap(), &node.address);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_says_what_it_uses_and_counts_what_it_does() {
    let node = Node::start().await;
    let usage = async || {
        let request = v1::GetNodeUsageRequest {};
        let reply = node.cluster().get_node_usage(request).await.unwrap();
        reply.into_inner()
    };
    let before = usage().await;
    assert_eq!(before.node_id, 1);
    let refusal = node.try_run(start_of("missing", "")).await.unwrap_err();
    assert_eq!(refusal.code(), tonic::Code::NotFound);
    let after = usage().await;
    assert!(after.commands_proposed > before.commands_proposed);
    assert!(after.entries_proposed > before.entries_proposed);
    assert!(after.entries_applied > before.entries_applied);
    assert!(after.log_fsync_count > before.log_fsync_count);
    assert!(after.log_written_bytes > before.log_written_bytes);
    assert!(after.uptime_ms >= before.uptime_ms && after.cpu_ms >= before.cpu_ms);
    if cfg!(target_os = "linux") {
        assert!(
            after.cpu_ms.is_some() && after.resident_bytes.is_some_and(|bytes| bytes > 1 << 20)
        );
        assert!(after.written_bytes >= before.written_bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_leads_is_healthy() {
    let node = Node::start().await;
    let mut health = HealthClient::new(node.channel());
    for service in [
        "",
        "flotilla.v1.WorkflowService",
        "flotilla.v1.ClusterService",
    ] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let mut updates = health.watch(request).await.unwrap().into_inner();
        while updates.message().await.unwrap().unwrap().status() != ServingStatus::Serving {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_describes_its_services() {
    let node = Node::start().await;
    let request = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..Default::default()
    };
    let mut client = ServerReflectionClient::new(node.channel());
    let replies = client
        .server_reflection_info(tokio_stream::iter([request]))
        .await
        .unwrap();
    let reply = replies.into_inner().message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = reply.message_response else {
        panic!("expected a list of services");
    };
    let names: Vec<String> = list
        .service
        .into_iter()
        .map(|service| service.name)
        .collect();
    for service in ["Workflow", "Action", "Plan", "Worker", "Cluster"] {
        assert!(
            names.contains(&format!("flotilla.v1.{service}Service")),
            "{names:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_does_not_start_with_a_wrong_configuration_or_on_a_taken_port() {
    let wrong = ServerConfig {
        node_id: 0,
        ..ServerConfig::default()
    };
    let error = Server::start(wrong).await.err().unwrap();
    assert!(
        matches!(error, ServerError::Config(ConfigInvalid::NodeIdZero)),
        "{error}"
    );

    let node = Node::start().await;
    let taken = ServerConfig {
        listen: node.address.parse().unwrap(),
        ..ServerConfig::default()
    };
    let error = Server::start(taken).await.err().unwrap();
    assert!(matches!(error, ServerError::Listen { .. }), "{error}");
    assert!(error.hint().is_some());

    let taken = ServerConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        http_listen: node.address.parse().unwrap(),
        ..ServerConfig::default()
    };
    let error = Server::start(taken).await.err().unwrap().to_string();
    assert!(error.contains(&node.address), "{error}");
}
