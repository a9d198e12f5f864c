//! The calls that one member makes to another.

use crate::network::caller::Caller;
use crate::network::protocol::{
    AppendRequest, AppendResponse, FetchSnapshotRequest, ForwardRequest, ForwardResponse,
    ProbeRequest, ProbeResponse, Sender, SnapshotPart, SnapshotResponse, StatusRequest,
    StatusResponse, TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// Why a call to a peer has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// It certainly did not arrive.
    #[error("the peer is unreachable: {0}")]
    Unreachable(String),
    /// It arrived and was refused.
    #[error("the peer refused: {0}")]
    Refused(String),
    /// It may have arrived.
    #[error("the call failed: {0}")]
    Failed(String),
}

/// The result of a call.
pub type PeerResult<T> = Result<T, PeerError>;

/// The future result of a call.
pub type PeerFuture<'a, T> = BoxFuture<'a, PeerResult<T>>;

/// Requests of a streaming call; an interrupted stream just ends.
pub type Requests<T> = BoxStream<'static, T>;

/// Responses of a streaming call, which may be interrupted.
pub type Responses<T> = BoxStream<'static, PeerResult<T>>;

/// The calls that one member makes to another; the protocol describes each.
pub trait PeerCalls: Send + Sync + 'static {
    /// Replicates the log.
    fn append(
        &self,
        requests: Requests<AppendRequest>,
    ) -> PeerFuture<'_, Responses<AppendResponse>>;

    /// Asks for a vote.
    fn vote(&self, request: VoteRequest) -> PeerFuture<'_, VoteResponse>;

    /// Replaces the peer's state.
    fn install_snapshot(&self, parts: Requests<SnapshotPart>) -> PeerFuture<'_, SnapshotResponse>;

    /// Asks for the peer's state.
    fn fetch_snapshot(
        &self,
        request: FetchSnapshotRequest,
    ) -> PeerFuture<'_, Responses<SnapshotPart>>;

    /// Asks a follower to take over as the leader.
    fn transfer_leader(
        &self,
        request: TransferLeaderRequest,
    ) -> PeerFuture<'_, TransferLeaderResponse>;

    /// Forwards requests that only the leader can serve.
    fn forward(
        &self,
        requests: Requests<ForwardRequest>,
    ) -> PeerFuture<'_, Responses<ForwardResponse>>;

    /// Asks for the member's status.
    fn status(&self, request: StatusRequest) -> PeerFuture<'_, StatusResponse>;

    /// Asks for the member's identity.
    fn probe(&self, request: ProbeRequest) -> PeerFuture<'_, ProbeResponse>;

    /// Whether the serving side accepts calls from this caller. Every caller may [`probe`](Self::probe): the host of a node
    /// is unknown before it is added.
    fn admits(&self, _caller: &Caller) -> bool {
        true
    }

    /// Checks the sender that a call of a service of the host states.
    ///
    /// # Errors
    /// [`PeerError::Refused`] if the serving side takes no messages from it.
    fn check_sender(&self, _sender: Sender) -> PeerResult<()> {
        Ok(())
    }
}
