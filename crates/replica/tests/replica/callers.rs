//! Which callers a node serves at its peer port.

use crate::cluster::{Cluster, LONG};
use flotilla_engine::BoundActor;
use flotilla_engine::NodeId;
use flotilla_replica::protocol::peer_client::PeerClient;
use flotilla_replica::protocol::{
    ForwardRequest, ProbeRequest, Sender, StatusRequest, StatusResponse, forward_request,
};
use flotilla_replica::{
    Accepted, Arrivals, Caller, CallerCertificate, Config, Environment, GrpcTransport,
    HostCallSender, HostServices, PlainSockets, Replica, Sockets, Tuning,
};
use futures::StreamExt;
use http_body_util::StreamBody;
use hyper::body::Frame;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{Bytes, Service};
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

/// Sockets whose callers all have a certificate for one host.
struct Certified(&'static str);

struct CertificateFor(&'static str);

impl CallerCertificate for CertificateFor {
    fn is_valid_for(&self, host: &str) -> bool {
        host == self.0
    }

    fn bound_actor(&self) -> Option<&BoundActor> {
        None
    }
}

impl Sockets for Certified {
    fn channel(&self, endpoint: &Endpoint) -> Channel {
        PlainSockets.channel(endpoint)
    }

    fn accept(&self, listener: TcpListener) -> Arrivals {
        let host = self.0;
        let incoming = TcpIncoming::from(listener);
        Box::pin(incoming.map(move |stream| {
            let caller = Caller::with_certificate(Arc::new(CertificateFor(host)));
            Ok(Accepted::new(stream?, caller))
        }))
    }
}

/// Sockets that count how often a call on one of their connections is admitted.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Counting {
    fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Sockets for Counting {
    fn channel(&self, endpoint: &Endpoint) -> Channel {
        PlainSockets.channel(endpoint)
    }

    fn accept(&self, listener: TcpListener) -> Arrivals {
        let count = self.0.clone();
        let incoming = TcpIncoming::from(listener);
        Box::pin(incoming.map(move |stream| {
            let count = count.clone();
            let admitted = move || {
                count.fetch_add(1, Ordering::AcqRel);
            };
            Ok(Accepted::new(
                stream?,
                Caller::default().with_admission(admitted),
            ))
        }))
    }
}

/// A service of the host, which answers every call with one status.
#[derive(Clone)]
struct OfHost;

impl NamedService for OfHost {
    const NAME: &'static str = "test.OfHost";
}

impl Service<Request<Body>> for OfHost {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Status::already_exists("reached").into_http()))
    }
}

/// A single node whose callers have a certificate for `host`.
async fn node(cluster: &mut Cluster, host: &'static str, peer_names: &[&str]) -> Replica {
    node_with(cluster, host, (peer_names, &HostServices::default())).await
}

async fn node_with(
    cluster: &mut Cluster,
    host: &'static str,
    (peer_names, services): (&[&str], &HostServices),
) -> Replica {
    let config = Config {
        peer_names: peer_names.iter().map(|name| (*name).to_owned()).collect(),
        ..cluster.taken_config(1)
    };
    node_over(config, Arc::new(Certified(host)), services).await
}

async fn node_over(config: Config, sockets: Arc<dyn Sockets>, services: &HostServices) -> Replica {
    let environment = Environment {
        transport: Arc::new(GrpcTransport::over(sockets).with_host_services(services)),
        ..Environment::default()
    };
    let replica = Replica::start(config, environment).await;
    replica.expect("the node starts")
}

/// Waits until the node leads its cluster.
async fn formed(replica: &Replica) {
    let mut leadership = replica.leadership();
    let led = leadership.wait_for(|leadership| leadership.is_ready).await;
    drop(led.expect("it runs"));
}

/// How the node at `address` answers a call that only members may make, and a probe.
async fn call(address: String) -> [Result<(), Status>; 2] {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let mut client = PeerClient::new(endpoint.timeout(LONG).connect_lazy());
    let status = client.status(StatusRequest { sender: None }).await;
    let probe = ProbeRequest {
        node_id: 9,
        may_form: false,
        group_id: 0,
    };
    let probe = client.probe(probe).await;
    [status.map(drop), probe.map(drop)]
}

/// How the node at `address` answers a call of its host's service from this sender.
async fn call_host(address: &str, sender: Option<&HostCallSender>) -> Code {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let mut client = Grpc::new(endpoint.timeout(LONG).connect_lazy());
    client.ready().await.expect("the node listens");
    let path = PathAndQuery::from_static("/test.OfHost/Call");
    let codec = ProstCodec::<StatusRequest, StatusResponse>::default();
    let mut request = tonic::Request::new(StatusRequest { sender: None });
    if let Some(sender) = sender {
        sender.state(request.metadata_mut());
    }
    let answer = client.unary(request, path, codec).await;
    answer.map_or_else(|status| status.code(), |_| Code::Ok)
}

#[tokio::test]
async fn a_certificate_for_another_host_reaches_nothing_but_probes() {
    let mut cluster = Cluster::new(1, Tuning::default());
    let address = cluster.config(1).peer_listen.to_string();
    for (host, names, expected) in [
        ("other.example", &[][..], Code::PermissionDenied),
        // A call without a sender is refused later.
        ("127.0.0.1", &[], Code::FailedPrecondition),
        (
            "other.example",
            &["other.example"],
            Code::FailedPrecondition,
        ),
    ] {
        let replica = node(&mut cluster, host, names).await;
        let [status, probe] = call(address.clone()).await;
        let code = status.map_or_else(|status| status.code(), |()| Code::Ok);
        assert_eq!(code, expected, "{host} {names:?}");
        assert!(probe.is_ok(), "{probe:?}");
        replica.shutdown().await;
    }
}

#[tokio::test]
async fn only_members_reach_the_services_of_the_host() {
    let mut cluster = Cluster::new(1, Tuning::default());
    let address = cluster.config(1).peer_listen.to_string();
    for (host, expected) in [
        ("other.example", [Code::PermissionDenied; 2]),
        ("127.0.0.1", [Code::Unavailable, Code::AlreadyExists]),
    ] {
        let services = HostServices::default();
        let replica = node_with(&mut cluster, host, (&[], &services)).await;
        formed(&replica).await;
        let sender = replica.host_call_sender(NodeId(1));
        let before = call_host(&address, Some(&sender)).await;
        services.provide(Routes::new(OfHost));
        let after = call_host(&address, Some(&sender)).await;
        assert_eq!([before, after], expected, "{host}");
        replica.shutdown().await;
    }
}

#[tokio::test]
async fn the_services_of_the_host_take_no_call_from_another_cluster() {
    let mut cluster = Cluster::new(1, Tuning::default());
    let services = HostServices::default();
    services.provide(Routes::new(OfHost));
    let replica = node_with(&mut cluster, "127.0.0.1", (&[], &services)).await;
    formed(&replica).await;
    let address = cluster.config(1).peer_listen.to_string();
    let other = Cluster::started(1, Tuning::default()).await;
    formed(other.node(1)).await;
    let own = replica.host_call_sender(NodeId(1));
    assert_eq!(call_host(&address, Some(&own)).await, Code::AlreadyExists);
    let of_other_cluster = other.node(1).host_call_sender(NodeId(1));
    let for_other_node = replica.host_call_sender(NodeId(2));
    for sender in [None, Some(&of_other_cluster), Some(&for_other_node)] {
        let code = call_host(&address, sender).await;
        assert_eq!(code, Code::Unavailable, "{sender:?}");
    }
    replica.shutdown().await;
}

#[tokio::test]
async fn only_a_call_that_states_a_member_of_the_cluster_admits_its_caller() {
    let mut cluster = Cluster::new(1, Tuning::default());
    let address = cluster.config(1).peer_listen.to_string();
    let (sockets, services) = (Counting::default(), HostServices::default());
    services.provide(Routes::new(OfHost));
    let config = cluster.taken_config(1);
    let replica = node_over(config, Arc::new(sockets.clone()), &services).await;
    formed(&replica).await;
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let mut client = PeerClient::new(endpoint.timeout(LONG).connect_lazy());
    let probed = client.probe(ProbeRequest::default()).await;
    let member = Sender {
        cluster_id: probed.expect("it answers").into_inner().cluster_id,
        node_id: 2,
        target_node_id: 1,
        ..Sender::default()
    };
    let stranger = Sender {
        cluster_id: "other".to_owned(),
        ..member.clone()
    };
    for sender in [None, Some(stranger.clone())] {
        let refused = client.status(StatusRequest { sender }).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    let open = |sender| {
        let opening = ForwardRequest {
            body: Some(forward_request::Body::Open(sender)),
            ..ForwardRequest::default()
        };
        futures::stream::iter([opening]).chain(futures::stream::pending())
    };
    assert!(client.forward(open(stranger)).await.is_err());
    assert_eq!(call_host(&address, None).await, Code::Unavailable);
    assert_eq!(sockets.count(), 0);

    let request = StatusRequest {
        sender: Some(member.clone()),
    };
    client.status(request).await.expect("it answers");
    assert_eq!(sockets.count(), 1);
    let forwarding = client.forward(open(member)).await;
    assert_eq!(sockets.count(), 2);
    drop(forwarding.expect("it is opened"));
    let own = replica.host_call_sender(NodeId(1));
    assert_eq!(call_host(&address, Some(&own)).await, Code::AlreadyExists);
    assert_eq!(sockets.count(), 3);
    replica.shutdown().await;
}

/// What arrives of a request of this length, and what follows.
async fn send_part(address: String, declared: usize, sent: usize) -> Code {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let mut channel = endpoint.connect_lazy();
    let mut bytes = vec![0; 5 + sent];
    bytes[1..5].copy_from_slice(
        &u32::try_from(declared)
            .expect("a short request")
            .to_be_bytes(),
    );
    let frames = futures::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(bytes)))]);
    let body = Body::new(StreamBody::new(frames.chain(futures::stream::pending())));
    let request = Request::post(format!("http://{address}/flotilla.peer.v1.Peer/Probe"))
        .header("content-type", "application/grpc")
        .body(body)
        .expect("a request");
    std::future::poll_fn(|context| channel.poll_ready(context))
        .await
        .expect("the node listens");
    let response = channel.call(request).await.expect("a response");
    let status = Status::from_header_map(response.headers());
    status.expect("it is refused").code()
}

#[tokio::test]
async fn a_request_that_is_too_long_is_refused_before_it_has_arrived() {
    let mut cluster = Cluster::new(1, Tuning::default());
    let replica = node(&mut cluster, "127.0.0.1", &[]).await;
    let address = cluster.config(1).peer_listen.to_string();
    let code = send_part(address, 1 << 20, 65 << 10).await;
    assert_eq!(code, Code::ResourceExhausted);
    replica.shutdown().await;
}
