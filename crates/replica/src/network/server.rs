//! A peer over gRPC, on the serving side.

use crate::network::caller::Caller;
use crate::network::calls::{PeerCalls, PeerError, Responses};
use crate::network::client::{KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, MESSAGE_BYTES_MAX};
use crate::network::head::Headed;
use crate::network::host_services::{HostCallSender, HostServicesHandle};
use crate::network::member_guard::{MemberGuard, PROBE, is_proven};
use crate::network::protocol::peer_server::{Peer, PeerServer};
use crate::network::protocol::{
    AppendRequest, AppendResponse, FetchSnapshotRequest, ForwardRequest, ForwardResponse,
    ProbeRequest, ProbeResponse, SnapshotPart, SnapshotResponse, StatusRequest, StatusResponse,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use crate::network::refusal_log::RefusalLog;
use crate::network::sockets::Arrivals;
use futures::StreamExt;
use futures::stream::BoxStream;
use http_body_util::{BodyExt, Full, Limited};
use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Extensions, Request, Response, Status, Streaming};

/// Concurrent calls on one connection. A host may have many to one member.
const STREAMS_MAX: u32 = 4_096;
/// The calls whose requests are streams.
const STREAMS: [&str; 3] = ["Append", "InstallSnapshot", "Forward"];
/// The maximum size of the other requests, which have only a few numbers and names. In bytes.
const UNARY_BYTES_MAX: usize = 64 << 10;
/// The maximum time until such a request has arrived.
const UNARY_DEADLINE: Duration = Duration::from_secs(30);

/// The services for members: those of `peer`, and those of the host.
pub(crate) fn routes(peer: Arc<dyn PeerCalls>, host_services: HostServicesHandle) -> Routes {
    let service = Arc::new(PeerService {
        peer,
        log: RefusalLog::default(),
    });
    let of_peer = PeerServer::from_arc(Arc::clone(&service))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let of_peer = Guarded {
        inner: of_peer,
        service: Arc::clone(&service),
    };
    let of_host = InterceptedService::new(host_services, move |request: Request<()>| {
        service.check_caller(request.extensions())?;
        service.check_sender(&request)?;
        Ok(request)
    });
    let router = Routes::new(of_peer).into_axum_router();
    Routes::from(router.fallback_service(of_host))
}

/// Serves incoming connections behind the guard, until `shutdown`.
pub(crate) fn serve(
    incoming: Arrivals,
    (guard, routes): (MemberGuard, Routes),
    shutdown: CancellationToken,
) {
    // A peer whose machine is gone closes no connection, and its streams hold what it has begun.
    let serving = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .max_concurrent_streams(STREAMS_MAX)
        .layer(guard)
        .add_routes(routes)
        .serve_with_incoming(incoming);
    // Streams between peers end only with their processes, so there is nothing to wait for.
    tokio::spawn(async move {
        tokio::select! {
            result = serving => {
                if let Err(error) = result {
                    tracing::error!(%error, "the peer server ended");
                }
            }
            () = shutdown.cancelled() => {}
        }
    });
}

/// The service of `peer`. It refuses calls from others than members before it reads their bodies, and limits the size and the arrival
/// time of unary requests.
#[derive(Clone)]
struct Guarded {
    inner: PeerServer<PeerService>,
    service: Arc<PeerService>,
}

impl NamedService for Guarded {
    const NAME: &'static str = <PeerServer<PeerService> as NamedService>::NAME;
}

impl Service<http::Request<Body>> for Guarded {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // The service is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = request.uri().path().rsplit('/').next();
        let is_probe = method == Some(PROBE);
        let is_stream = method.is_some_and(|method| STREAMS.contains(&method));
        if !is_probe && let Err(refused) = self.service.check_caller(request.extensions()) {
            return Box::pin(ready(Ok(refused.into_http())));
        }
        let mut inner = self.inner.clone();
        if is_stream {
            return inner.call(request);
        }
        Box::pin(async move {
            match whole(request).await {
                Ok(request) => inner.call(request).await,
                Err(refused) => Ok(refused.into_http()),
            }
        })
    }
}

/// The request once its body has arrived.
async fn whole(request: http::Request<Body>) -> Result<http::Request<Body>, Status> {
    let (parts, body) = request.into_parts();
    let arriving = Limited::new(body, UNARY_BYTES_MAX).collect();
    let arrived = timeout(UNARY_DEADLINE, arriving).await;
    let arrived = arrived
        .map_err(|_| {
            Status::deadline_exceeded("expected the request to arrive in time, but it did not")
        })?
        .map_err(|error| {
            let text =
                format!("expected a whole request of at most {UNARY_BYTES_MAX} bytes, but reading it failed: {error}");
            Status::resource_exhausted(text)
        })?;
    let body = Body::new(Full::new(arrived.to_bytes()));
    Ok(http::Request::from_parts(parts, body))
}

struct PeerService {
    peer: Arc<dyn PeerCalls>,
    log: RefusalLog,
}

impl PeerService {
    /// Whether the caller is a member, as far as its certificate, or the secret of its call, shows.
    fn is_admitted(&self, extensions: &Extensions) -> bool {
        let caller = extensions.get::<Caller>();
        is_proven(extensions) && caller.is_some_and(|caller| self.peer.admits(caller))
    }

    /// Refuses a call of the host's services that comes from another cluster, or is meant for another node.
    fn check_sender(&self, request: &Request<()>) -> Result<(), Status> {
        let checked = HostCallSender::check(request.metadata(), self.peer.as_ref());
        checked.map_err(|error| Status::unavailable(error.to_string()))?;
        mark_admitted(request.extensions());
        Ok(())
    }

    /// A unary call whose head is that of a member marks its caller as admitted.
    fn note_sender(&self, request: &Request<impl Headed>) {
        if is_of_member(&*self.peer, request.get_ref()) {
            mark_admitted(request.extensions());
        }
    }

    /// The messages of a stream. The first one with the head of a member marks its caller as admitted.
    fn requests<T: Headed + Send + 'static>(
        &self,
        request: Request<Streaming<T>>,
    ) -> BoxStream<'static, T> {
        let mut unmarked = request.extensions().get::<Caller>().cloned();
        let peer = Arc::clone(&self.peer);
        let marked = requests(request).inspect(move |message| {
            if let Some(caller) = unmarked.take_if(|_| is_of_member(&*peer, message)) {
                caller.mark_admitted();
            }
        });
        Box::pin(marked)
    }

    /// Refuses callers that are not members.
    fn check_caller(&self, extensions: &Extensions) -> Result<(), Status> {
        if self.is_admitted(extensions) {
            return Ok(());
        }
        let text =
            "expected a certificate for the host of a member, but this one is for other hosts";
        self.log_refusal(extensions);
        Err(Status::permission_denied(text))
    }

    /// Logs a refused call, unless one was logged a moment ago: a caller may try again and again.
    fn log_refusal(&self, extensions: &Extensions) {
        let address = extensions.get::<Caller>().and_then(Caller::address);
        if self.log.is_due(address) {
            tracing::warn!(
                ?address,
                "a call at the peer port was refused: the caller's certificate is not for the host of a member; if the caller \
                 is one, add its host to `peer_names`"
            );
        }
    }
}

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Peer for PeerService {
    type AppendStream = BoxStream<'static, Result<AppendResponse, Status>>;
    type FetchSnapshotStream = BoxStream<'static, Result<SnapshotPart, Status>>;
    type ForwardStream = BoxStream<'static, Result<ForwardResponse, Status>>;

    async fn append(
        &self,
        request: Request<Streaming<AppendRequest>>,
    ) -> RpcResult<Self::AppendStream> {
        let responses = self
            .peer
            .append(self.requests(request))
            .await
            .map_err(status)?;
        Ok(Response::new(outgoing(responses)))
    }

    async fn vote(&self, request: Request<VoteRequest>) -> RpcResult<VoteResponse> {
        self.note_sender(&request);
        self.peer
            .vote(request.into_inner())
            .await
            .map(Response::new)
            .map_err(status)
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<SnapshotPart>>,
    ) -> RpcResult<SnapshotResponse> {
        let answer = self.peer.install_snapshot(self.requests(request)).await;
        answer.map(Response::new).map_err(status)
    }

    async fn fetch_snapshot(
        &self,
        request: Request<FetchSnapshotRequest>,
    ) -> RpcResult<Self::FetchSnapshotStream> {
        self.note_sender(&request);
        let responses = self.peer.fetch_snapshot(request.into_inner()).await;
        Ok(Response::new(outgoing(responses.map_err(status)?)))
    }

    async fn transfer_leader(
        &self,
        request: Request<TransferLeaderRequest>,
    ) -> RpcResult<TransferLeaderResponse> {
        self.note_sender(&request);
        self.peer
            .transfer_leader(request.into_inner())
            .await
            .map(Response::new)
            .map_err(status)
    }

    async fn forward(
        &self,
        request: Request<Streaming<ForwardRequest>>,
    ) -> RpcResult<Self::ForwardStream> {
        let responses = self
            .peer
            .forward(self.requests(request))
            .await
            .map_err(status)?;
        Ok(Response::new(outgoing(responses)))
    }

    async fn status(&self, request: Request<StatusRequest>) -> RpcResult<StatusResponse> {
        self.note_sender(&request);
        self.peer
            .status(request.into_inner())
            .await
            .map(Response::new)
            .map_err(status)
    }

    async fn probe(&self, request: Request<ProbeRequest>) -> RpcResult<ProbeResponse> {
        // Only members, and those that a cluster is formed of, have a say in its formation.
        let may_form = request.get_ref().may_form && self.is_admitted(request.extensions());
        let request = ProbeRequest {
            may_form,
            ..request.into_inner()
        };
        self.peer
            .probe(request)
            .await
            .map(Response::new)
            .map_err(status)
    }
}

/// Whether the head of a message is that of a member of this node's cluster.
fn is_of_member(peer: &dyn PeerCalls, message: &impl Headed) -> bool {
    let sender = message.sender();
    sender.is_some_and(|sender| peer.check_sender(sender.clone()).is_ok())
}

fn mark_admitted(extensions: &Extensions) {
    if let Some(caller) = extensions.get::<Caller>() {
        caller.mark_admitted();
    }
}

fn requests<T: Send + 'static>(request: Request<Streaming<T>>) -> BoxStream<'static, T> {
    let streaming = request.into_inner();
    Box::pin(
        streaming
            .take_while(|message| futures::future::ready(message.is_ok()))
            .filter_map(|message| futures::future::ready(message.ok())),
    )
}

fn outgoing<T: Send + 'static>(responses: Responses<T>) -> BoxStream<'static, Result<T, Status>> {
    Box::pin(responses.map(|answer| answer.map_err(status)))
}

fn status(error: PeerError) -> Status {
    match error {
        PeerError::Unreachable(text) => Status::unavailable(text),
        PeerError::Refused(text) => Status::failed_precondition(text),
        PeerError::Failed(text) => Status::internal(text),
    }
}
