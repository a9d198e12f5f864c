//! Serves the calls of this node's peers.

use crate::attempt::{Attempt, SubmitError};
use crate::cluster::disk_pressure::DiskPressure;
use crate::cluster::lost_tail;
use crate::core::Core;
use crate::membership::cluster_id;
use crate::network::caller::Caller;
use crate::network::calls::{PeerCalls, PeerError, PeerFuture, PeerResult, Requests, Responses};
use crate::network::convert;
use crate::network::local::{self, HOME_GROUP_ID, Standing};
use crate::network::protocol::{
    AppendRequest, AppendResponse, DiskLow, Done, DrainedSet, FetchSnapshotRequest, ForwardRequest,
    ForwardResponse, KnownMember, NotLeader, Opened, Overloaded, ProbeRequest, ProbeResponse,
    Sender, SnapshotPart, SnapshotResponse, StatusRequest, StatusResponse, TransferLeaderRequest,
    TransferLeaderResponse, Unknown, VoteRequest, VoteResponse, forward_request, forward_response,
};
use crate::network::snapshots::{self, Outgoing};
use crate::proposal::Control;
use flotilla_engine::{CommandEnvelope, NodeId, Rejection, Reply, codec};
use futures::stream::{self, StreamExt};
use openraft::async_runtime::watch::WatchReceiver;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

/// Concurrent forwarded requests of one peer.
const FORWARDS_MAX: usize = 4_096;
/// The maximum time for the next part of a snapshot.
const PART_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum time for the first request of a stream of forwarded requests.
const OPENING_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum time for a forwarded request.
const FORWARD_TIMEOUT_MAX: Duration = Duration::from_secs(300);

/// Serves the calls of this node's peers.
pub(crate) struct Handler {
    pub(crate) core: Arc<Core>,
}

impl Handler {
    /// Until it is known that this is not a wiped member, it takes part in nothing.
    /// Consensus that ends takes no calls either, and would log each as an error.
    fn check_admitted(&self) -> PeerResult<()> {
        let has_lost_tail = self.core.candidacy.has_lost_tail();
        if self.core.lifecycle.has_ended() || has_lost_tail {
            return Err(PeerError::Unreachable("it is stopping".to_owned()));
        }
        if self.core.formation.progress.is_admitted() {
            return Ok(());
        }
        Err(PeerError::Unreachable(
            "it does not know its cluster yet".to_owned(),
        ))
    }

    /// Checks the head of a message, and returns its sender.
    ///
    /// # Errors
    /// [`PeerError::Refused`] if it is from another cluster, for another node, or from a removed member. Appends of a removed
    /// member are not refused: a leader that was removed replicates its removal.
    fn admit(&self, sender: Option<Sender>) -> PeerResult<u64> {
        let standing = |node_id| match self.core.retired_ids.contains(NodeId(node_id)) {
            true => Standing::Removed,
            false => standing_of(&self.core, node_id),
        };
        self.core.local.admit(sender, standing)
    }

    /// A diverged state is not sent to any peer.
    fn check_sound(&self) -> PeerResult<()> {
        if self.core.lifecycle.is_diverged() {
            let text = "its own state differs from the majority's";
            return Err(PeerError::Refused(text.to_owned()));
        }
        Ok(())
    }
}

impl PeerCalls for Handler {
    fn append(
        &self,
        requests: Requests<AppendRequest>,
    ) -> PeerFuture<'_, Responses<AppendResponse>> {
        Box::pin(async move {
            self.check_admitted()?;
            let core = Arc::clone(&self.core);
            let stopping = core.lifecycle.ended();
            // Held until the last response has been taken.
            let open = core.appends.token();
            // A request that cannot be decoded or stored ends the stream; the leader then retries.
            let requests = requests.take_until(stopping).scan(core, |core, request| {
                let read = admit_leader(core, request.sender.clone())
                    .map(|leader| core.timing.note(leader, request.election_ms))
                    .and_then(|()| lost_tail::check(core, &request))
                    .and_then(|()| convert::append_in(request).map_err(PeerError::from));
                if let Err(error) = &read {
                    tracing::warn!(%error, "an append was refused");
                }
                ready(
                    read.ok()
                        .filter(|request| core.disk.keeps(&request.entries)),
                )
            });
            let core = Arc::clone(&self.core);
            let responses = self
                .core
                .raft
                .stream_append(Box::pin(requests))
                .map(move |result| {
                    let _open = &open;
                    let result = result.map_err(|error| PeerError::Failed(error.to_string()))?;
                    let wall_ms = core.local.clock.wall_ms();
                    Ok(convert::appended_out(
                        &result,
                        wall_ms,
                        core.disk.pressure(),
                        core.candidacy.is_drained(),
                    ))
                });
            let responses: Responses<AppendResponse> = Box::pin(responses);
            Ok(responses)
        })
    }

    fn vote(&self, request: VoteRequest) -> PeerFuture<'_, VoteResponse> {
        Box::pin(async move {
            self.check_admitted()?;
            self.admit(request.sender.clone())?;
            let is_pre_vote = request.pre_vote;
            let request = convert::vote_request_in(request)?;
            let response = if is_pre_vote {
                self.core.raft.pre_vote(request).await
            } else {
                self.core.raft.vote(request).await
            };
            let response = response.map_err(|error| PeerError::Failed(error.to_string()))?;
            Ok(convert::vote_response_out(
                &response,
                self.core.local.clock.wall_ms(),
            ))
        })
    }

    fn install_snapshot(&self, parts: Requests<SnapshotPart>) -> PeerFuture<'_, SnapshotResponse> {
        Box::pin(async move {
            self.check_admitted()?;
            let silence_max = PART_TIMEOUT.min(self.core.tuning.install_snapshot_timeout);
            let mut parts = snapshots::until_silent(parts, silence_max);
            let begin = snapshots::receive_begin(&mut parts).await?;
            admit_leader(&self.core, begin.sender.clone())?;
            let vote = convert::vote_in(begin.vote).map_err(PeerError::from)?;
            let install = self.core.installs.begin(vote).await?;
            if !self.core.disk.has_space_for_state() {
                let text = "there is too little free space on its disk for a snapshot";
                return Err(PeerError::Failed(text.to_owned()));
            }
            let core = Arc::clone(&self.core);
            // The estimate of the needed space was only a guess.
            let parts =
                parts.take_while(move |_| ready(core.disk.pressure() > DiskPressure::Critical));
            let store = self.core.store.as_ref();
            let pool = &self.core.links.blocking_pool;
            let receiving = snapshots::receive_rows(begin, parts.boxed(), store, pool);
            let received = tokio::select! {
                received = receiving => received?,
                error = install.replaced() => return Err(error),
            };
            let installed = self
                .core
                .raft
                .install_full_snapshot(received.vote, received.snapshot)
                .await;
            let response = installed.map_err(|error| PeerError::Failed(error.to_string()))?;
            Ok(SnapshotResponse {
                vote: Some(convert::vote_out(&response.vote)),
            })
        })
    }

    fn fetch_snapshot(
        &self,
        request: FetchSnapshotRequest,
    ) -> PeerFuture<'_, Responses<SnapshotPart>> {
        Box::pin(async move {
            self.check_admitted()?;
            let asker = self.admit(request.sender)?;
            self.check_sound()?;
            let readers = Arc::clone(&self.core.links.snapshot_readers);
            let permit = readers.try_acquire_owned().map_err(|_| {
                PeerError::Failed("it sends as many snapshots as it can".to_owned())
            })?;
            let snapshot = self.core.snapshot_maker.at(request.min_index).await?;
            // The divergence may have been found meanwhile, by an entry of this very snapshot.
            self.check_sound()?;
            let vote = self.core.raft.server_metrics().borrow_watched().vote;
            let sender = self.core.local.sender(asker);
            let blocking_pool = self.core.links.blocking_pool.clone();
            let outgoing = Outgoing { snapshot, permit };
            let parts = snapshots::send(sender, &vote, outgoing, blocking_pool);
            let responses: Responses<SnapshotPart> = Box::pin(parts.map(Ok));
            Ok(responses)
        })
    }

    fn transfer_leader(
        &self,
        request: TransferLeaderRequest,
    ) -> PeerFuture<'_, TransferLeaderResponse> {
        Box::pin(async move {
            self.check_admitted()?;
            self.admit(request.sender.clone())?;
            if request.to_node_id == self.core.local.node_id && self.core.candidacy.is_drained() {
                let refusal = "it is drained".to_owned();
                return Ok(TransferLeaderResponse { refusal });
            }
            let request = convert::transfer_in(request)?;
            let handled = self.core.raft.handle_transfer_leader(request).await;
            let refusal = match handled.map_err(|error| PeerError::Failed(error.to_string()))? {
                Ok(()) => String::new(),
                Err(error) => error.to_string(),
            };
            Ok(TransferLeaderResponse { refusal })
        })
    }

    fn forward(
        &self,
        mut requests: Requests<ForwardRequest>,
    ) -> PeerFuture<'_, Responses<ForwardResponse>> {
        Box::pin(async move {
            self.check_admitted()?;
            let opening = tokio::time::timeout(OPENING_TIMEOUT, requests.next()).await;
            let Ok(Some(ForwardRequest {
                body: Some(forward_request::Body::Open(sender)),
                ..
            })) = opening
            else {
                let text = "expected a stream that opens with its sender";
                return Err(PeerError::Refused(text.to_owned()));
            };
            self.admit(Some(sender))?;
            let (responses, receiver) = mpsc::channel(FORWARDS_MAX);
            tokio::spawn(serve_forwards(Arc::clone(&self.core), requests, responses));
            let opened = stream::iter([opened(&self.core)]);
            let responses: Responses<ForwardResponse> =
                Box::pin(opened.chain(ReceiverStream::new(receiver)).map(Ok));
            Ok(responses)
        })
    }

    fn status(&self, request: StatusRequest) -> PeerFuture<'_, StatusResponse> {
        Box::pin(async move {
            self.admit(request.sender)?;
            Ok(self.core.status_reports.own())
        })
    }

    fn probe(&self, request: ProbeRequest) -> PeerFuture<'_, ProbeResponse> {
        Box::pin(async move {
            local::check_group(request.group_id)?;
            if request.may_form {
                self.core.formation.progress.request_from(request.node_id);
            }
            Ok(probe(&self.core))
        })
    }

    fn admits(&self, caller: &Caller) -> bool {
        let membership = self.core.consensus.membership();
        self.core.local.is_member_host(caller, &membership)
    }

    fn check_sender(&self, sender: Sender) -> PeerResult<()> {
        // Such a call may have waited for its connection, so its time says nothing about the sender's clock.
        self.core.local.check(&sender)?;
        match self.core.retired_ids.contains(NodeId(sender.node_id)) {
            true => Err(local::removed(sender.node_id)),
            false => Ok(()),
        }
    }
}

/// As [`Handler::admit`], for what a leader sends.
fn admit_leader(core: &Core, sender: Option<Sender>) -> PeerResult<u64> {
    core.local
        .admit(sender, |node_id| standing_of(core, node_id))
}

/// Whether a node is a member, as far as this node knows.
fn standing_of(core: &Core, node_id: u64) -> Standing {
    match core.consensus.membership().get_node(&node_id) {
        Some(_) => Standing::Member,
        None => Standing::Stranger,
    }
}

/// The first response of a stream of forwarded requests.
fn opened(core: &Core) -> ForwardResponse {
    ForwardResponse {
        id: 0,
        answer: Some(forward_response::Answer::Opened(Opened {
            cluster_id: core.local.cluster_id().unwrap_or_default().to_owned(),
            node_id: core.local.node_id,
            group_id: HOME_GROUP_ID,
        })),
    }
}

fn probe(core: &Core) -> ProbeResponse {
    let membership = core.consensus.membership();
    let known = |(node_id, member): (&u64, &crate::membership::Member)| KnownMember {
        node_id: *node_id,
        incarnation: member.incarnation,
        peer_address: member.peer_address.clone(),
    };
    ProbeResponse {
        node_id: core.local.node_id,
        incarnation: core.local.incarnation,
        client_address: core.local.client_address.clone(),
        engine_version: core.local.engine_version,
        group_id: HOME_GROUP_ID,
        formation_requirements: core.local.formation_requirements.clone(),
        retired_node_ids: core.retired_ids.read().into_iter().flatten().collect(),
        empty: core.log.is_pristine(),
        cluster_id: cluster_id(membership.membership()).unwrap_or_default(),
        members: membership.nodes().map(known).collect(),
    }
}

/// Handles a peer's requests concurrently, up to the limit.
async fn serve_forwards(
    core: Arc<Core>,
    mut requests: Requests<ForwardRequest>,
    responses: mpsc::Sender<ForwardResponse>,
) {
    let permits = Arc::new(Semaphore::new(FORWARDS_MAX));
    while let Some(request) = requests.next().await {
        let permit = Arc::clone(&permits).acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        let core = Arc::clone(&core);
        let responses = responses.clone();
        tokio::spawn(async move {
            let answer = Some(answer(&core, request.body, request.timeout_ms).await);
            // The peer may be gone, and then nothing waits for the response.
            drop(
                responses
                    .send(ForwardResponse {
                        id: request.id,
                        answer,
                    })
                    .await,
            );
            drop(permit);
        });
    }
}

async fn answer(
    core: &Core,
    body: Option<forward_request::Body>,
    timeout_ms: u64,
) -> forward_response::Answer {
    let timeout = Duration::from_millis(timeout_ms).min(FORWARD_TIMEOUT_MAX);
    let deadline = Instant::now() + timeout;
    // What an operator asks of this very member, it answers in any state.
    let is_for_operator = matches!(
        body,
        Some(forward_request::Body::Inspect(_) | forward_request::Body::SetDrained(_))
    );
    if (core.lifecycle.is_diverged() && !is_for_operator) || core.lifecycle.has_ended() {
        return forward_response::Answer::NotLeader(NotLeader {});
    }
    match body {
        Some(forward_request::Body::Command(bytes)) => match CommandEnvelope::decode(&bytes) {
            Ok(envelope) => submitted(
                core.submissions
                    .submit_here(envelope, bytes.len(), deadline)
                    .await,
            ),
            Err(error) => {
                tracing::error!(%error, "a forwarded command cannot be decoded");
                forward_response::Answer::Unknown(Unknown {})
            }
        },
        Some(forward_request::Body::Control(bytes)) => match Control::decode(&bytes) {
            Ok(control) => match core.control_writer.write_here(control, deadline).await {
                Attempt::Done(()) => forward_response::Answer::Done(Done {}),
                Attempt::NotLeader => forward_response::Answer::NotLeader(NotLeader {}),
                Attempt::Failed(_) => forward_response::Answer::Unknown(Unknown {}),
            },
            Err(error) => {
                tracing::error!(%error, "a forwarded control record cannot be decoded");
                forward_response::Answer::Unknown(Unknown {})
            }
        },
        Some(forward_request::Body::Change(bytes)) => match codec::decode(&bytes) {
            Ok(change) => match core.changes.change_here(change, deadline).await {
                Attempt::Done(judged) => {
                    forward_response::Answer::ChangeResult(codec::encode(&judged).into())
                }
                Attempt::NotLeader => forward_response::Answer::NotLeader(NotLeader {}),
                Attempt::Failed(_) => forward_response::Answer::Unknown(Unknown {}),
            },
            Err(error) => {
                tracing::error!(%error, "a forwarded membership change cannot be decoded");
                forward_response::Answer::Unknown(Unknown {})
            }
        },
        Some(forward_request::Body::ReadIndex(_)) => match core.barrier.index(true).await {
            Ok(Some(index)) => forward_response::Answer::ReadIndex(index),
            Ok(None) | Err(_) => forward_response::Answer::NotLeader(NotLeader {}),
        },
        Some(forward_request::Body::TakeSnapshot(_)) => {
            match core.snapshot_maker.make(deadline).await {
                Ok(index) => forward_response::Answer::SnapshotIndex(index),
                Err(_) => forward_response::Answer::Unknown(Unknown {}),
            }
        }
        Some(forward_request::Body::SetDrained(set)) => {
            let changed = core.candidacy.set_drained(set.drained);
            forward_response::Answer::DrainedSet(DrainedSet { changed })
        }
        Some(forward_request::Body::Inspect(inspect)) => {
            forward_response::Answer::Inspection(core.inspections.inspect_here(inspect.rows_max))
        }
        Some(forward_request::Body::Open(_)) | None => {
            forward_response::Answer::Unknown(Unknown {})
        }
    }
}

fn submitted(attempt: Attempt<Result<Reply, Rejection>>) -> forward_response::Answer {
    match attempt {
        Attempt::Done(replied) => forward_response::Answer::Reply(codec::encode(&replied).into()),
        Attempt::NotLeader => forward_response::Answer::NotLeader(NotLeader {}),
        Attempt::Failed(SubmitError::Overloaded { retry_after_ms }) => {
            forward_response::Answer::Overloaded(Overloaded { retry_after_ms })
        }
        Attempt::Failed(SubmitError::DiskLow) => forward_response::Answer::DiskLow(DiskLow {}),
        Attempt::Failed(_) => forward_response::Answer::Unknown(Unknown {}),
    }
}
