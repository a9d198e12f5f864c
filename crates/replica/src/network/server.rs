//! A peer over gRPC, on the serving side.

use crate::network::caller::Caller;
use crate::network::calls::{PeerCalls, PeerError, Responses};
use crate::network::client::{KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, MESSAGE_BYTES_MAX};
use crate::network::host_services::HostServicesHandle;
use crate::network::protocol::peer_server::{Peer, PeerServer};
use crate::network::protocol::{
    AppendRequest, AppendResponse, FetchSnapshotRequest, ForwardRequest, ForwardResponse,
    ProbeRequest, ProbeResponse, SnapshotPart, SnapshotResponse, StatusRequest, StatusResponse,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use crate::network::sockets::Arrivals;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// Concurrent calls on one connection. A host may have many to one member.
const STREAMS_MAX: u32 = 4_096;
/// How often the log says that callers are refused.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The services for members: those of `peer`, and those of the host.
pub(crate) fn routes(peer: Arc<dyn PeerCalls>, host_services: HostServicesHandle) -> Routes {
    let service = Arc::new(PeerService {
        peer,
        logged: Mutex::default(),
    });
    let of_peer = PeerServer::from_arc(Arc::clone(&service))
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let of_host = InterceptedService::new(host_services, move |request: Request<()>| {
        service.check_caller(&request)?;
        Ok(request)
    });
    let router = Routes::new(of_peer).into_axum_router();
    Routes::from(router.fallback_service(of_host))
}

/// Serves incoming connections, until `shutdown`.
pub(crate) fn serve(incoming: Arrivals, routes: Routes, shutdown: CancellationToken) {
    // A peer whose machine is gone closes no connection, and its streams hold what it has begun.
    let serving = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
        .max_concurrent_streams(STREAMS_MAX)
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

struct PeerService {
    peer: Arc<dyn PeerCalls>,
    /// When the log last said that a caller was refused.
    logged: Mutex<Option<Instant>>,
}

impl PeerService {
    /// Refuses callers that are not members.
    fn check_caller<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let caller = request.extensions().get::<Caller>();
        if caller.is_some_and(|caller| self.peer.admits(caller)) {
            return Ok(());
        }
        let text =
            "expected a certificate for the host of a member, but this one is for other hosts";
        self.log_refusal();
        Err(Status::permission_denied(text))
    }

    /// Logs a refused call, unless one was logged a moment ago: a caller may try again and again.
    fn log_refusal(&self) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL) {
            *logged = Some(Instant::now());
            tracing::warn!(
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
        self.check_caller(&request)?;
        let responses = self.peer.append(requests(request)).await.map_err(status)?;
        Ok(Response::new(outgoing(responses)))
    }

    async fn vote(&self, request: Request<VoteRequest>) -> RpcResult<VoteResponse> {
        self.check_caller(&request)?;
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
        self.check_caller(&request)?;
        let answer = self.peer.install_snapshot(requests(request)).await;
        answer.map(Response::new).map_err(status)
    }

    async fn fetch_snapshot(
        &self,
        request: Request<FetchSnapshotRequest>,
    ) -> RpcResult<Self::FetchSnapshotStream> {
        self.check_caller(&request)?;
        let responses = self.peer.fetch_snapshot(request.into_inner()).await;
        Ok(Response::new(outgoing(responses.map_err(status)?)))
    }

    async fn transfer_leader(
        &self,
        request: Request<TransferLeaderRequest>,
    ) -> RpcResult<TransferLeaderResponse> {
        self.check_caller(&request)?;
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
        self.check_caller(&request)?;
        let responses = self.peer.forward(requests(request)).await.map_err(status)?;
        Ok(Response::new(outgoing(responses)))
    }

    async fn status(&self, request: Request<StatusRequest>) -> RpcResult<StatusResponse> {
        self.check_caller(&request)?;
        self.peer
            .status(request.into_inner())
            .await
            .map(Response::new)
            .map_err(status)
    }

    async fn probe(&self, request: Request<ProbeRequest>) -> RpcResult<ProbeResponse> {
        self.peer
            .probe(request.into_inner())
            .await
            .map(Response::new)
            .map_err(status)
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
