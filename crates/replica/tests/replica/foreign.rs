//! Nodes of other clusters at the addresses of members.

use crate::cluster::{Cluster, LONG, REGISTERED, register, submit_surely};
use flotilla_engine::NodeId;
use flotilla_replica::protocol::{
    ForwardRequest, ForwardResponse, ProbeRequest, ProbeResponse, ReadIndex, Sender,
    forward_request, forward_response,
};
use flotilla_replica::{
    Environment, FatalError, Formation, GrpcTransport, PeerError, Replica, StartError, Transport,
    Tuning,
};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_prost::ProstCodec;

/// Starts a new cluster of one node, `id`, at the address of a node of `cluster` that was killed.
async fn replace(cluster: &Cluster, id: u64) -> (Replica, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut config = cluster.config(id);
    let address = config.peer_listen.to_string();
    config.data_directory = directory.path().join("node");
    config.formation = Formation::Found {
        peers: BTreeMap::from([(NodeId(id), address)]),
    };
    let started = Replica::start(config, Environment::default()).await;
    let replica = started.expect("the new cluster starts");
    let mut leadership = replica.leadership();
    let led = leadership.wait_for(|leadership| leadership.is_ready).await;
    drop(led.expect("it runs"));
    (replica, directory)
}

#[tokio::test]
async fn a_member_without_a_quorum_takes_nothing_from_another_cluster_at_its_leaders_address() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    // The new cluster's log is shorter: its indices are applied here.
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let submitted = submit_surely(cluster.node(leader), register(name)).await;
        submitted.expect("it is registered");
    }
    cluster.agreed().await;
    let others: Vec<u64> = cluster.ids();
    let others: Vec<u64> = others.into_iter().filter(|id| *id != leader).collect();
    let member = cluster.node(others[0]).clone();
    cluster.kill(others[1]);
    cluster.kill(leader);
    let (other, _directory) = replace(&cluster, leader).await;

    let read = member.read_index(Instant::now() + LONG).await;
    assert!(read.is_err(), "{read:?}");
    let submitted = member
        .submit(register("x").by_anyone(), Instant::now() + LONG)
        .await;
    assert!(submitted.is_err(), "{submitted:?}");
    let registered = submit_surely(&other, register("x")).await;
    assert_eq!(
        registered,
        Ok(REGISTERED),
        "the other cluster has not taken it"
    );

    // A quorum could still be late: the member ends once there can be none.
    assert!(member.fatal().borrow().is_none());
    let (third, _its_directory) = replace(&cluster, others[1]).await;
    let mut fatal = member.fatal();
    let found = tokio::time::timeout(LONG, fatal.wait_for(Option::is_some)).await;
    let found: Arc<FatalError> = found.expect("in time").unwrap().clone().unwrap();
    let is_other = matches!(*found, FatalError::Refused(StartError::OtherCluster { .. }));
    assert!(is_other, "{found}");
    other.shutdown().await;
    third.shutdown().await;
}

/// What a node responds to a stream that begins with this request.
async fn opened(
    replica: (&Cluster, u64),
    first: forward_request::Body,
) -> Result<ForwardResponse, PeerError> {
    let (cluster, id) = replica;
    let peer = GrpcTransport::default().connect(&cluster.config(id).peer_listen.to_string());
    let request = |id, body| ForwardRequest {
        id,
        timeout_ms: 1_000,
        body: Some(body),
    };
    let read = forward_request::Body::ReadIndex(ReadIndex {});
    let requests = stream::iter([request(0, first), request(1, read)]);
    let mut responses = peer
        .forward(requests.chain(stream::pending()).boxed())
        .await?;
    responses.next().await.expect("a response")
}

#[tokio::test]
async fn a_stream_opens_with_a_sender_of_the_cluster() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let sender = Sender {
        cluster_id: cluster.node(1).cluster_id().unwrap().to_owned(),
        node_id: 2,
        target_node_id: 1,
        sent_at_ms: 0,
        client_address: "client-2:9000".to_owned(),
        group_id: 0,
    };
    let refused = [
        forward_request::Body::ReadIndex(ReadIndex {}),
        forward_request::Body::Open(Sender {
            cluster_id: "another".to_owned(),
            ..sender.clone()
        }),
        forward_request::Body::Open(Sender {
            target_node_id: 3,
            ..sender.clone()
        }),
        forward_request::Body::Open(Sender {
            group_id: 1,
            ..sender.clone()
        }),
    ];
    for first in refused {
        let response = opened((&cluster, 1), first.clone()).await;
        assert!(
            matches!(response, Err(PeerError::Refused(_))),
            "{first:?}: {response:?}"
        );
    }
    let response = opened((&cluster, 1), forward_request::Body::Open(sender)).await;
    let answer = response.expect("a stream").answer;
    let is_opened = matches!(answer, Some(forward_response::Answer::Opened(_)));
    assert!(is_opened, "{answer:?}");
}

#[tokio::test]
async fn a_probe_for_another_group_is_refused() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let peer = GrpcTransport::default().connect(&cluster.config(1).peer_listen.to_string());
    let probe = |group_id| ProbeRequest {
        node_id: 2,
        may_form: false,
        group_id,
    };
    let found = peer.probe(probe(0)).await.expect("a response");
    assert_eq!(
        (found.cluster_id.as_str(), found.group_id),
        (cluster.node(1).cluster_id().unwrap(), 0)
    );
    let refused = peer.probe(probe(1)).await;
    assert!(matches!(refused, Err(PeerError::Refused(_))), "{refused:?}");
}

/// Answers probes as a member of a cluster, in this Raft group of it.
#[derive(Clone)]
struct MemberOfGroup(u64);

impl NamedService for MemberOfGroup {
    const NAME: &'static str = "flotilla.peer.v1.Peer";
}

impl UnaryService<ProbeRequest> for MemberOfGroup {
    type Response = ProbeResponse;
    type Future = Ready<Result<tonic::Response<ProbeResponse>, Status>>;

    fn call(&mut self, _: tonic::Request<ProbeRequest>) -> Self::Future {
        ready(Ok(tonic::Response::new(ProbeResponse {
            node_id: 9,
            cluster_id: "cluster".to_owned(),
            group_id: self.0,
            ..ProbeResponse::default()
        })))
    }
}

impl Service<Request<Body>> for MemberOfGroup {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let codec = ProstCodec::<ProbeResponse, ProbeRequest>::default();
            Ok(Grpc::new(codec).unary(service, request).await)
        })
    }
}

/// The cluster that a node enters which joins through a member in this group.
async fn joined_cluster(group_id: u64) -> Option<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let seed = listener.local_addr().expect("a bound address").to_string();
    let member = Server::builder().add_service(MemberOfGroup(group_id));
    let serving = tokio::spawn(member.serve_with_incoming(TcpIncoming::from(listener)));
    let mut cluster = Cluster::new(1, Tuning::default());
    let mut config = cluster.taken_config(1);
    config.formation = Formation::Join { seeds: vec![seed] };
    let replica = Replica::start(config, Environment::default()).await;
    let replica = replica.expect("the node starts");
    let found = replica.cluster_id().map(ToOwned::to_owned);
    replica.shutdown().await;
    serving.abort();
    found
}

#[tokio::test]
async fn a_member_of_another_group_is_not_taken_for_one_of_this() {
    assert_eq!(joined_cluster(0).await.as_deref(), Some("cluster"));
    assert_eq!(joined_cluster(1).await, None);
}
