//! openraft's network: how it reaches a peer.

use crate::log::vote::Vote;
use crate::membership::Member;
use crate::network::calls::{PeerCalls, PeerError, Responses};
use crate::network::convert;
use crate::network::links::Links;
use crate::network::local::Local;
use crate::network::pipeline::Pipeline;
use crate::network::protocol::AppendResponse;
use crate::network::snapshots::{self, Outgoing};
use crate::raft::type_config::TypeConfig;
use crate::state::snapshot::SnapshotData;
use futures::{Stream, StreamExt};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{
    NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable,
};
use openraft::network::{
    Backoff, NetBackoff, NetSnapshot, NetStreamAppend, NetTransferLeader, NetVote, RPCOption,
};
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::type_config::alias::{SnapshotOf, VoteOf};
use openraft::{OptionalSend, RPCTypes, RaftNetworkFactory};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// A request must get a response within this time, or the stream is abandoned.
const STALL: Duration = Duration::from_secs(2);

type Rpc<T> = Result<T, RPCError<TypeConfig>>;
type Appended = Rpc<StreamAppendResult<TypeConfig>>;

/// Makes connections for openraft.
pub(crate) struct Connections {
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
}

impl RaftNetworkFactory<TypeConfig> for Connections {
    type Network = Connection;

    // openraft asks once for replication, once for heartbeats and once for snapshots, so each of
    // them has its own connection and bulk data does not delay heartbeats. It also asks for every
    // election; votes share the connection for short calls, and their own one is then never opened.
    async fn new_client(&mut self, target: u64, node: &Member) -> Connection {
        Connection {
            local: Arc::clone(&self.local),
            target,
            links: Arc::clone(&self.links),
            calls: self.links.connect(&node.peer_address),
            short_calls: self.links.calls(&node.peer_address),
        }
    }
}

/// A connection to one peer.
pub(crate) struct Connection {
    local: Arc<Local>,
    target: u64,
    links: Arc<Links>,
    /// For appends or a snapshot.
    calls: Arc<dyn PeerCalls>,
    short_calls: Arc<dyn PeerCalls>,
}

impl Connection {
    fn timed_out(&self, action: RPCTypes, timeout: Duration) -> Timeout<TypeConfig> {
        Timeout {
            action,
            id: self.local.node_id,
            target: self.target,
            timeout,
        }
    }

    async fn ask_vote(
        &self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
        is_pre_vote: bool,
    ) -> Rpc<VoteResponse<TypeConfig>> {
        let sender = self.local.sender(self.target);
        let request = convert::vote_request_out(&request, sender, is_pre_vote);
        let limit = option.hard_ttl();
        let response = tokio::time::timeout(limit, self.short_calls.vote(request)).await;
        let response = response
            .map_err(|_| self.timed_out(RPCTypes::Vote, limit))?
            .map_err(rpc_error)?;
        self.local
            .clock
            .observe_peer(self.target, response.sent_at_ms);
        convert::vote_response_in(response).map_err(|error| NetworkError::new(&error).into())
    }
}

impl NetStreamAppend<TypeConfig> for Connection {
    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        _option: RPCOption,
    ) -> BoxFuture<'s, Rpc<BoxStream<'s, Appended>>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        let pipeline = Pipeline::default();
        let (local, target) = (Arc::clone(&self.local), self.target);
        let requests = pipeline.requests(input).map(move |request| {
            let acknowledged = local.acknowledged(target, &request.vote);
            let head = (local.sender(target), local.election_ms);
            convert::append_out(&request, acknowledged, head)
        });
        Box::pin(async move {
            // openraft's backoff after a failure comes before the first request. Connecting without
            // it would retry a peer that refuses connections in a tight loop.
            let mut requests = requests;
            let Some(first) = requests.next().await else {
                let nothing: BoxStream<'s, Appended> = Box::pin(futures::stream::empty());
                return Ok(nothing);
            };
            let vote = convert::vote_in(first.vote).map_err(|error| NetworkError::new(&error))?;
            let requests = futures::stream::iter([first]).chain(requests);
            let opened = tokio::time::timeout(STALL, self.calls.append(Box::pin(requests))).await;
            let responses = opened
                .map_err(|_| self.timed_out(RPCTypes::AppendEntries, STALL))?
                .map_err(rpc_error)?;
            let session = Session {
                connection: self,
                vote,
                responses,
                pipeline,
            };
            let stream: BoxStream<'s, Appended> =
                Box::pin(futures::stream::unfold(Some(session), |session| async {
                    session?.next().await
                }));
            Ok(stream)
        })
    }
}

/// An open stream of appends.
struct Session<'s> {
    connection: &'s Connection,
    /// The leader's, with which the stream began.
    vote: Vote,
    responses: Responses<AppendResponse>,
    pipeline: Pipeline,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.pipeline.note_handled();
    }
}

impl Session<'_> {
    /// The next response; an error is the last. Waits as long as no response is due.
    async fn next(mut self) -> Option<(Appended, Option<Self>)> {
        // openraft asks for the next response only when it has handled the last one.
        self.pipeline.note_handled();
        loop {
            let was_waiting = self.pipeline.is_response_due();
            match tokio::time::timeout(STALL, self.responses.next()).await {
                Ok(None) => return None,
                Ok(Some(Ok(response))) => {
                    let (local, target) = (&self.connection.local, self.connection.target);
                    local.clock.observe_peer(target, response.sent_at_ms);
                    local.note_disk_pressure(
                        target,
                        convert::disk_pressure_in(response.disk_pressure),
                    );
                    local.note_drained(target, response.drained);
                    let response = convert::appended_in(response);
                    if let Ok(Ok(Some(matching))) = &response {
                        local.note_acknowledged(target, self.vote, *matching);
                    }
                    return Some(match response {
                        Ok(Ok(matching)) if !self.pipeline.note_response(&matching) => continue,
                        Ok(result) => (Ok(result), Some(self)),
                        Err(error) => (Err(NetworkError::new(&error).into()), None),
                    });
                }
                Ok(Some(Err(error))) => return Some((Err(rpc_error(error)), None)),
                Err(_) if was_waiting => {
                    let timeout = self.connection.timed_out(RPCTypes::AppendEntries, STALL);
                    return Some((Err(timeout.into()), None));
                }
                Err(_) => {}
            }
        }
    }
}

impl NetVote<TypeConfig> for Connection {
    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Rpc<VoteResponse<TypeConfig>> {
        self.ask_vote(request, option, false).await
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Rpc<VoteResponse<TypeConfig>> {
        self.ask_vote(request, option, true).await
    }
}

impl NetSnapshot<TypeConfig> for Connection {
    type SnapshotData = SnapshotData;

    async fn full_snapshot(
        &mut self,
        vote: VoteOf<TypeConfig>,
        snapshot: SnapshotOf<TypeConfig, SnapshotData>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let sender = self.local.sender(self.target);
        let limit = option.hard_ttl();
        let sending = async {
            let permit = Arc::clone(&self.links.snapshot_readers)
                .acquire_owned()
                .await;
            let permit = permit.expect("the semaphore is never closed");
            let outgoing = Outgoing { snapshot, permit };
            let pool = self.links.blocking_pool.clone();
            let parts = snapshots::send(sender, &vote, outgoing, pool);
            self.calls.install_snapshot(parts).await
        };
        let response = tokio::select! {
            response = tokio::time::timeout(limit, sending) => response,
            closed = cancel => return Err(closed.into()),
        };
        let response = response
            .map_err(|_| self.timed_out(RPCTypes::InstallSnapshot, limit))?
            .map_err(|error| match error {
                PeerError::Unreachable(text) => {
                    StreamingError::from(Unreachable::from_string(text))
                }
                other => NetworkError::new(&other).into(),
            })?;
        let vote = convert::vote_in(response.vote).map_err(|error| NetworkError::new(&error))?;
        Ok(SnapshotResponse::new(vote))
    }
}

impl NetTransferLeader<TypeConfig> for Connection {
    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Rpc<TransferLeaderResponse<TypeConfig>> {
        let request = convert::transfer_out(&request, self.local.sender(self.target));
        let limit = option.hard_ttl();
        let response = tokio::time::timeout(limit, self.short_calls.transfer_leader(request)).await;
        let response = response
            .map_err(|_| self.timed_out(RPCTypes::TransferLeader, limit))?
            .map_err(rpc_error)?;
        if response.refusal.is_empty() {
            return Ok(Ok(()));
        }
        Err(NetworkError::from_string(response.refusal).into())
    }
}

impl NetBackoff<TypeConfig> for Connection {
    fn backoff(&self) -> Option<Backoff> {
        None
    }
}

fn rpc_error(error: PeerError) -> RPCError<TypeConfig> {
    match error {
        PeerError::Unreachable(text) | PeerError::Refused(text) => {
            Unreachable::from_string(text).into()
        }
        PeerError::Failed(text) => NetworkError::from_string(text).into(),
    }
}
