//! One member as another sees it.

use crate::network::protocol::{
    AppendRequest, AppendResponse, FetchSnapshotRequest, ForwardRequest, ForwardResponse,
    ProbeRequest, ProbeResponse, SnapshotPart, SnapshotResponse, StatusRequest, StatusResponse,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// Why a call to a peer has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It certainly did not arrive.
    #[error("the peer cannot be reached: {0}")]
    Unreachable(String),
    /// It arrived and was refused.
    #[error("the peer refused: {0}")]
    Refused(String),
    /// It may have arrived.
    #[error("the call failed: {0}")]
    Failed(String),
}

/// The answer to a call.
pub type PeerResult<T> = Result<T, PeerError>;

/// A future answer.
pub type PeerFuture<'a, T> = BoxFuture<'a, PeerResult<T>>;

/// Requests of a streaming call; one that breaks off just ends.
pub type Requests<T> = BoxStream<'static, T>;

/// Answers of a streaming call, which may break off.
pub type Answers<T> = BoxStream<'static, PeerResult<T>>;

/// One member as another sees it; see the protocol for what each call means.
pub trait PeerCalls: Send + Sync + 'static {
    /// Replicates the log.
    fn append(&self, requests: Requests<AppendRequest>) -> PeerFuture<'_, Answers<AppendResponse>>;

    /// Asks for a vote.
    fn vote(&self, request: VoteRequest) -> PeerFuture<'_, VoteResponse>;

    /// Replaces the peer's state.
    fn install_snapshot(&self, parts: Requests<SnapshotPart>) -> PeerFuture<'_, SnapshotResponse>;

    /// Asks for the peer's state.
    fn fetch_snapshot(
        &self,
        request: FetchSnapshotRequest,
    ) -> PeerFuture<'_, Answers<SnapshotPart>>;

    /// Tells a follower to take over.
    fn transfer_leader(
        &self,
        request: TransferLeaderRequest,
    ) -> PeerFuture<'_, TransferLeaderResponse>;

    /// Carries what only the leader can answer.
    fn forward(
        &self,
        requests: Requests<ForwardRequest>,
    ) -> PeerFuture<'_, Answers<ForwardResponse>>;

    /// How the member stands.
    fn status(&self, request: StatusRequest) -> PeerFuture<'_, StatusResponse>;

    /// Who the member is.
    fn probe(&self, request: ProbeRequest) -> PeerFuture<'_, ProbeResponse>;
}
