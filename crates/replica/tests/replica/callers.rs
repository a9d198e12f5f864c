//! Which callers a node serves at its peer port.

use crate::cluster::{Cluster, LONG};
use flotilla_replica::protocol::peer_client::PeerClient;
use flotilla_replica::protocol::{ProbeRequest, StatusRequest};
use flotilla_replica::{
    Accepted, Arrivals, Caller, CallerCertificate, Config, Environment, GrpcTransport,
    PlainSockets, Replica, Sockets, Tuning,
};
use futures::StreamExt;
use std::sync::Arc;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// Sockets whose callers all have a certificate for one host.
struct Certified(&'static str);

struct CertificateFor(&'static str);

impl CallerCertificate for CertificateFor {
    fn is_valid_for(&self, host: &str) -> bool {
        host == self.0
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

/// A single node whose callers have a certificate for `host`.
async fn node(cluster: &mut Cluster, host: &'static str, peer_names: &[&str]) -> Replica {
    let config = Config {
        peer_names: peer_names.iter().map(|name| (*name).to_owned()).collect(),
        ..cluster.taken_config(1)
    };
    let environment = Environment {
        transport: Arc::new(GrpcTransport::over(Arc::new(Certified(host)))),
        ..Environment::default()
    };
    let replica = Replica::start(config, environment).await;
    replica.expect("the node starts")
}

/// How the node at `address` answers a call that only members may make, and a probe.
async fn call(address: String) -> [Result<(), Status>; 2] {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let mut client = PeerClient::new(endpoint.timeout(LONG).connect_lazy());
    let status = client.status(StatusRequest { sender: None }).await;
    let probe = ProbeRequest {
        node_id: 9,
        may_form: false,
    };
    let probe = client.probe(probe).await;
    [status.map(drop), probe.map(drop)]
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
