//! Peers over the simulated network: implements the replica's transport.

use super::call::CallError;
use super::{Host, Network, Process, Route};
use flotilla_replica::protocol::{
    AppendRequest, AppendResponse, FetchSnapshotRequest, ForwardRequest, ForwardResponse,
    ProbeRequest, ProbeResponse, SnapshotPart, SnapshotResponse, StatusRequest, StatusResponse,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse, forward_request,
    forward_response,
};
use flotilla_replica::{
    PeerCalls, PeerError, PeerFuture, PeerResult, Requests, Responses, Transport,
};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

const PORT: u16 = 9_001;

/// Where a node serves its peers.
pub(crate) fn peer_address(host: Host) -> SocketAddr {
    let last = u8::try_from(host).expect("a cluster has few nodes");
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), PORT))
}

fn host_at(address: SocketAddr) -> Host {
    match address.ip() {
        IpAddr::V4(ip) => u64::from(ip.octets()[3]),
        IpAddr::V6(_) => unreachable!("all addresses were made by `peer_address`"),
    }
}

/// How a node reaches its peers.
pub(crate) struct SimulatedTransport {
    pub(crate) network: Network,
    pub(crate) host: Host,
    /// The planted bug: each end takes the other one for a member of the same cluster.
    pub(crate) forges_senders: bool,
}

impl Transport for SimulatedTransport {
    fn connect(&self, address: &str) -> Arc<dyn PeerCalls> {
        let address = address.parse().expect("it was made by `peer_address`");
        Arc::new(SimulatedPeer {
            network: self.network.clone(),
            route: Route {
                from: self.host,
                to: host_at(address),
            },
            forges_senders: self.forges_senders,
        })
    }

    fn serve(
        &self,
        _listen: SocketAddr,
        peer: Arc<dyn PeerCalls>,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, io::Result<()>> {
        let (network, host) = (self.network.clone(), self.host);
        Box::pin(async move {
            let handle = Handle::current();
            network.attach(
                host,
                Process {
                    handle: handle.clone(),
                    peer,
                    gateway: None,
                },
            );
            handle.spawn(async move {
                shutdown.cancelled().await;
                network.detach(host);
            });
            Ok(())
        })
    }
}

/// A peer, as one node sees it.
struct SimulatedPeer {
    network: Network,
    route: Route,
    forges_senders: bool,
}

impl SimulatedPeer {
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl Fn(Arc<dyn PeerCalls>) -> BoxFuture<'static, PeerResult<T>> + Send + Sync + 'static,
    ) -> PeerResult<T> {
        let called = self.network.call(self.route, move |to| ask(to.peer)).await;
        match called {
            Ok(response) => response,
            Err(CallError::Refused) => {
                Err(PeerError::Unreachable("no process serves there".to_owned()))
            }
            Err(CallError::Lost) => Err(PeerError::Failed("no response came".to_owned())),
        }
    }

    /// An old append may arrive again when the log has long moved on.
    fn echo_append(&self, request: &AppendRequest) {
        let Some(echo_ms) = self.network.echo_ms() else {
            return;
        };
        let (network, to, request) = (self.network.clone(), self.route.to, request.clone());
        self.network.at(echo_ms, move || {
            let Some(Process { handle, peer, .. }) = network.process(to) else {
                return;
            };
            handle.spawn(async move {
                let requests: Requests<AppendRequest> = Box::pin(stream::iter([request]));
                if let Ok(responses) = peer.append(requests).await {
                    responses.for_each(|_| std::future::ready(())).await;
                }
            });
        });
    }

    fn another(&self) -> Self {
        Self {
            network: self.network.clone(),
            route: self.route,
            forges_senders: self.forges_senders,
        }
    }
}

impl PeerCalls for SimulatedPeer {
    fn append(
        &self,
        requests: Requests<AppendRequest>,
    ) -> PeerFuture<'_, Responses<AppendResponse>> {
        let echoing = self.another();
        let requests = Box::pin(requests.inspect(move |request| echoing.echo_append(request)));
        let open = |to: Process, requests: Requests<AppendRequest>| -> BoxFuture<'static, _> {
            Box::pin(async move { to.peer.append(requests).await })
        };
        Box::pin(self.network.stream(self.route, requests, open))
    }

    fn vote(&self, request: VoteRequest) -> PeerFuture<'_, VoteResponse> {
        Box::pin(self.ask(move |peer| {
            let request = request.clone();
            Box::pin(async move { peer.vote(request).await })
        }))
    }

    fn install_snapshot(&self, parts: Requests<SnapshotPart>) -> PeerFuture<'_, SnapshotResponse> {
        let open = |to: Process, parts: Requests<SnapshotPart>| -> BoxFuture<'static, _> {
            Box::pin(async move {
                let answer = to.peer.install_snapshot(parts).await?;
                let responses: Responses<SnapshotResponse> = Box::pin(stream::iter([Ok(answer)]));
                Ok(responses)
            })
        };
        Box::pin(async move {
            let mut responses = self.network.stream(self.route, parts, open).await?;
            let lost = || PeerError::Failed("the connection was lost".to_owned());
            responses.next().await.ok_or_else(lost)?
        })
    }

    fn fetch_snapshot(
        &self,
        request: FetchSnapshotRequest,
    ) -> PeerFuture<'_, Responses<SnapshotPart>> {
        let open =
            |to: Process, mut requests: Requests<FetchSnapshotRequest>| -> BoxFuture<'static, _> {
                Box::pin(async move {
                    let lost = || PeerError::Failed("the connection was lost".to_owned());
                    let request = requests.next().await.ok_or_else(lost)?;
                    to.peer.fetch_snapshot(request).await
                })
            };
        let requests: Requests<FetchSnapshotRequest> = Box::pin(stream::iter([request]));
        Box::pin(self.network.stream(self.route, requests, open))
    }

    fn transfer_leader(
        &self,
        request: TransferLeaderRequest,
    ) -> PeerFuture<'_, TransferLeaderResponse> {
        Box::pin(self.ask(move |peer| {
            let request = request.clone();
            Box::pin(async move { peer.transfer_leader(request).await })
        }))
    }

    fn forward(
        &self,
        requests: Requests<ForwardRequest>,
    ) -> PeerFuture<'_, Responses<ForwardResponse>> {
        let open = match self.forges_senders {
            true => forward_forged,
            false => forward,
        };
        Box::pin(self.network.stream(self.route, requests, open))
    }

    fn status(&self, request: StatusRequest) -> PeerFuture<'_, StatusResponse> {
        Box::pin(self.ask(move |peer| {
            let request = request.clone();
            Box::pin(async move { peer.status(request).await })
        }))
    }

    fn probe(&self, request: ProbeRequest) -> PeerFuture<'_, ProbeResponse> {
        Box::pin(self.ask(move |peer| Box::pin(async move { peer.probe(request).await })))
    }
}

/// How a process handles a stream of forwarded requests.
fn forward(
    to: Process,
    requests: Requests<ForwardRequest>,
) -> BoxFuture<'static, PeerResult<Responses<ForwardResponse>>> {
    Box::pin(async move { to.peer.forward(requests).await })
}

/// The same with the planted bug: each end receives the cluster id that it expects.
fn forward_forged(
    to: Process,
    mut requests: Requests<ForwardRequest>,
) -> BoxFuture<'static, PeerResult<Responses<ForwardResponse>>> {
    Box::pin(async move {
        let mut first = requests.next().await;
        let mut own = String::new();
        if let Some(ForwardRequest {
            body: Some(forward_request::Body::Open(sender)),
            ..
        }) = &mut first
        {
            let node_id = sender.node_id;
            let probe = ProbeRequest {
                node_id,
                may_form: false,
                group_id: sender.group_id,
            };
            let target = to.peer.probe(probe).await?;
            own = std::mem::replace(&mut sender.cluster_id, target.cluster_id);
        }
        let requests = stream::iter(first).chain(requests);
        let responses = to.peer.forward(Box::pin(requests)).await?;
        let forged = responses.map(move |response| {
            let mut response = response?;
            if let Some(forward_response::Answer::Opened(opened)) = &mut response.answer {
                opened.cluster_id.clone_from(&own);
            }
            Ok(response)
        });
        Ok(Box::pin(forged) as Responses<ForwardResponse>)
    })
}
