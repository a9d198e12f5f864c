//! Clusters of several nodes, and clusters without a quorum.

use crate::node::{APPROVAL, Node, refused, start_of};
use flotilla_api::v1;
use flotilla_api::v1::watch_run_response::Update;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn any_node_serves_any_call_and_names_the_leader() {
    let nodes = Node::start_cluster().await;
    let status = nodes[0]
        .cluster()
        .get_status(v1::GetStatusRequest {})
        .await
        .unwrap()
        .into_inner();
    let leader = status.leader_id.unwrap();
    let address = |node: &v1::NodeStatus| (node.node_id == leader).then(|| node.address.clone());
    let leader = status.nodes.iter().find_map(address).unwrap();
    nodes[0].create(APPROVAL).await;
    for (position, node) in nodes.iter().enumerate() {
        let run_id = node.run(start_of("approval", "")).await.run_id;
        let other = &nodes[(position + 1) % nodes.len()];
        let request = v1::WatchRunRequest {
            run_id: run_id.clone(),
            ..Default::default()
        };
        let reply = node.workflows().watch_run(request).await.unwrap();
        assert_eq!(reply.metadata().get("flo-leader").unwrap(), leader.as_str());
        other.signal(&run_id, "{}").await.unwrap();
        assert_eq!(
            node.status(&run_id).await.status(),
            v1::RunStatus::Completed
        );
        let mut updates = reply.into_inner();
        let mut last = None;
        while let Some(update) = updates.message().await.unwrap() {
            last = update.update;
        }
        let Some(Update::Status(status)) = last else {
            panic!("a status ends the stream")
        };
        assert_eq!(status.status(), v1::RunStatus::Completed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waits_for_its_cluster_refuses_calls_immediately_and_shows_the_status() {
    let node = Node::start_without_quorum().await;
    // Without a deadline: it would wait for as long as any call may.
    let start = node.workflows().start_run(start_of("approval", "")).await;
    assert_eq!(
        refused(start),
        (Code::Unavailable, "node_not_member".to_owned())
    );
    let request = v1::GetRunRequest {
        run_id: "wfrun-1".to_owned(),
        ..Default::default()
    };
    let read = node.workflows().get_run(request.clone()).await;
    assert_eq!(
        refused(read),
        (Code::Unavailable, "node_not_member".to_owned())
    );
    let stale = v1::GetRunRequest {
        stale: true,
        ..request
    };
    let read = node.workflows().get_run(stale).await;
    assert_eq!(
        refused(read),
        (Code::Unavailable, "node_not_member".to_owned())
    );
    let reply = node
        .cluster()
        .get_status(v1::GetStatusRequest {})
        .await
        .unwrap();
    assert_eq!(reply.metadata().get("flo-leader"), None);
    assert_eq!(
        (
            reply.get_ref().leader_id,
            reply.get_ref().responding_node_id
        ),
        (None, 1)
    );
}
