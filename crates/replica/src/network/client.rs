//! A peer over gRPC, on the calling side.

use crate::network::calls::{PeerCalls, PeerError, PeerFuture, Requests, Responses};
use crate::network::member_secret::MemberSecretInterceptor;
use crate::network::protocol::peer_client::PeerClient;
use crate::network::protocol::{
    AppendRequest, AppendResponse, FetchSnapshotRequest, ForwardRequest, ForwardResponse,
    ProbeRequest, ProbeResponse, SnapshotPart, SnapshotResponse, StatusRequest, StatusResponse,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use crate::network::sockets::Sockets;
use futures::{Stream, StreamExt};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

/// The maximum size of a message between peers: two full entries and their frame.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(2);
pub(crate) const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Calls a peer, as a member.
type Client = PeerClient<InterceptedService<Channel, MemberSecretInterceptor>>;

/// A peer over gRPC; connects when first used and again after failures.
pub(crate) struct GrpcPeer {
    /// Unset for an invalid address.
    client: Option<Client>,
    address: String,
}

impl GrpcPeer {
    /// A peer by its `host:port`.
    pub(crate) fn new(
        address: &str,
        sockets: &dyn Sockets,
        secret: MemberSecretInterceptor,
    ) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).ok();
        let client = endpoint.map(|endpoint| {
            let endpoint = endpoint
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
                .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
                .keep_alive_while_idle(true);
            PeerClient::with_interceptor(sockets.channel(&endpoint), secret)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX)
        });
        Self {
            client,
            address: address.to_owned(),
        }
    }

    fn client(&self) -> Result<Client, PeerError> {
        self.client.clone().ok_or_else(|| {
            PeerError::Unreachable(format!("expected HOST:PORT, but found {:?}", self.address))
        })
    }
}

impl PeerCalls for GrpcPeer {
    fn append(
        &self,
        requests: Requests<AppendRequest>,
    ) -> PeerFuture<'_, Responses<AppendResponse>> {
        Box::pin(async move {
            Ok(responses(
                self.client()?
                    .append(Sending(requests))
                    .await
                    .map_err(error)?
                    .into_inner(),
            ))
        })
    }

    fn vote(&self, request: VoteRequest) -> PeerFuture<'_, VoteResponse> {
        Box::pin(async move {
            Ok(self
                .client()?
                .vote(request)
                .await
                .map_err(error)?
                .into_inner())
        })
    }

    fn install_snapshot(&self, parts: Requests<SnapshotPart>) -> PeerFuture<'_, SnapshotResponse> {
        Box::pin(async move {
            Ok(self
                .client()?
                .install_snapshot(Sending(parts))
                .await
                .map_err(error)?
                .into_inner())
        })
    }

    fn fetch_snapshot(
        &self,
        request: FetchSnapshotRequest,
    ) -> PeerFuture<'_, Responses<SnapshotPart>> {
        Box::pin(async move {
            Ok(responses(
                self.client()?
                    .fetch_snapshot(request)
                    .await
                    .map_err(error)?
                    .into_inner(),
            ))
        })
    }

    fn transfer_leader(
        &self,
        request: TransferLeaderRequest,
    ) -> PeerFuture<'_, TransferLeaderResponse> {
        Box::pin(async move {
            Ok(self
                .client()?
                .transfer_leader(request)
                .await
                .map_err(error)?
                .into_inner())
        })
    }

    fn forward(
        &self,
        requests: Requests<ForwardRequest>,
    ) -> PeerFuture<'_, Responses<ForwardResponse>> {
        Box::pin(async move {
            Ok(responses(
                self.client()?
                    .forward(Sending(requests))
                    .await
                    .map_err(error)?
                    .into_inner(),
            ))
        })
    }

    fn status(&self, request: StatusRequest) -> PeerFuture<'_, StatusResponse> {
        Box::pin(async move {
            Ok(self
                .client()?
                .status(request)
                .await
                .map_err(error)?
                .into_inner())
        })
    }

    fn probe(&self, request: ProbeRequest) -> PeerFuture<'_, ProbeResponse> {
        Box::pin(async move {
            Ok(self
                .client()?
                .probe(request)
                .await
                .map_err(error)?
                .into_inner())
        })
    }
}

/// A stream of requests with a named type: behind the alias, the compiler cannot prove that the
/// call may move between threads.
struct Sending<T>(Requests<T>);

impl<T> Stream for Sending<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_next_unpin(context)
    }
}

fn responses<T: Send + 'static>(streaming: Streaming<T>) -> Responses<T> {
    Box::pin(streaming.map(|message| message.map_err(error)))
}

fn error(status: Status) -> PeerError {
    let text = status.message().to_owned();
    match status.code() {
        Code::Unavailable => PeerError::Unreachable(text),
        Code::FailedPrecondition | Code::PermissionDenied => PeerError::Refused(text),
        code => PeerError::Failed(format!("{code}: {text}")),
    }
}
