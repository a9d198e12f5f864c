//! Submits commands from any node: executes them here at the leader, or forwards them to it.
//!
//! A command that certainly was not proposed is retried until the deadline; one that may have been
//! is reported as unknown, never as failed (design rule 9).

use crate::attempt::{Attempt, SubmitError};
use crate::batch::queue::{Arrival, Queue, Submission, SubmissionResult, Ticket};
use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::leader_search::LeaderSearch;
use crate::cluster::leadership::Leader;
use crate::cluster::member_disk::MemberDisk;
use crate::network::forward::{ForwardError, ForwardKind};
use crate::network::links::Links;
use crate::network::protocol::{forward_request, forward_response};
use crate::proposal::encoded_bytes;
use crate::tuning::Tuning;
use flotilla_engine::codec;
use flotilla_engine::limits::ENTRY_BYTES_MAX;
use flotilla_engine::{CommandEnvelope, Rejection, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// The retry delay for a shed command.
const RETRY_AFTER_MS: u64 = 100;

type Replied = Result<Reply, Rejection>;

/// The commands that callers submit at this node.
pub(crate) struct Submissions {
    parts: SubmissionParts,
    counters: SubmitCounters,
}

/// What submissions depend on.
pub(crate) struct SubmissionParts {
    pub(crate) queue: Arc<Queue>,
    pub(crate) leader_search: LeaderSearch,
    pub(crate) links: Arc<Links>,
    pub(crate) disk: Arc<MemberDisk>,
    pub(crate) consensus: ConsensusView,
    /// The engine version on which the cluster has agreed.
    pub(crate) engine_version: watch::Receiver<u32>,
    pub(crate) tuning: Tuning,
}

/// The results of submissions since the start.
#[derive(Debug, Default)]
pub(crate) struct SubmitCounters {
    pub(crate) forwarded: AtomicU64,
    pub(crate) refused: AtomicU64,
}

impl Submissions {
    pub(crate) fn new(parts: SubmissionParts) -> Self {
        Self {
            parts,
            counters: SubmitCounters::default(),
        }
    }

    /// The results since the start.
    pub(crate) fn counters(&self) -> &SubmitCounters {
        &self.counters
    }

    /// Submits a command.
    pub(crate) async fn submit(
        &self,
        envelope: CommandEnvelope,
        deadline: Instant,
    ) -> Result<Replied, SubmitError> {
        let bytes = encoded_bytes(&envelope);
        check_bytes(bytes)?;
        let leader_wait = self.parts.leader_search.leader_wait(deadline);
        self.await_agreed(envelope.command.body.since(), leader_wait)
            .await?;
        loop {
            let attempt = match self.parts.leader_search.destination(leader_wait).await? {
                None => self.submit_here(envelope.clone(), bytes, deadline).await,
                Some(leader) => self.forward_command(&leader, &envelope, deadline).await,
            };
            match attempt {
                Attempt::Done(replied) => return Ok(replied),
                Attempt::Failed(error) => {
                    if matches!(error, SubmitError::Overloaded { .. } | SubmitError::DiskLow) {
                        self.counters.refused.fetch_add(1, Ordering::Relaxed);
                    }
                    return Err(error);
                }
                Attempt::NotLeader => self.parts.leader_search.await_leader(leader_wait).await?,
            }
        }
    }

    /// Refuses a command that some members may not be able to decode (design rule 12), unless they
    /// have just been upgraded.
    async fn await_agreed(&self, needed: u32, leader_wait: Instant) -> Result<(), SubmitError> {
        let mut agreed = self.parts.engine_version.clone();
        let raised = timeout_at(leader_wait, agreed.wait_for(|agreed| *agreed >= needed));
        match raised.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(SubmitError::Shutdown),
            Err(_) => {
                let agreed = *self.parts.engine_version.borrow();
                Err(SubmitError::EngineVersionTooLow { needed, agreed })
            }
        }
    }

    /// One attempt at this node, which should lead. A command that finds the budget of its entry used up is proposed
    /// again in a later one, until the deadline.
    pub(crate) async fn submit_here(
        &self,
        envelope: CommandEnvelope,
        bytes: usize,
        deadline: Instant,
    ) -> Attempt<Replied> {
        // Checked again here: an entry that does not fit into a message would end replication.
        if let Err(error) = check_bytes(bytes) {
            return Attempt::Failed(error);
        }
        if let Err(error) = self.parts.disk.check(envelope.command.body.admission()) {
            return Attempt::Failed(error);
        }
        let arrival = self.parts.queue.arrive();
        if !envelope.command.body.kind().needs_budget() {
            return self.propose_here(envelope, bytes, arrival, deadline).await;
        }
        loop {
            let envelope = envelope.clone();
            match self.propose_here(envelope, bytes, arrival, deadline).await {
                Attempt::Done(Err(Rejection::EntryFull)) if Instant::now() < deadline => {}
                attempt => return attempt,
            }
        }
    }

    /// Puts a command into the queue for the next entry, and waits for its result.
    async fn propose_here(
        &self,
        envelope: CommandEnvelope,
        bytes: usize,
        arrival: Arrival,
        deadline: Instant,
    ) -> Attempt<Replied> {
        let ticket = Arc::<Ticket>::default();
        let (result_sender, receiver) = oneshot::channel();
        let submission = Submission {
            envelope,
            bytes,
            ticket: Arc::clone(&ticket),
            result_sender,
            arrival,
        };
        let start = Instant::now();
        let overloaded = SubmitError::Overloaded {
            retry_after_ms: RETRY_AFTER_MS,
        };
        if self.parts.queue.push(submission).is_err() {
            return Attempt::Failed(overloaded);
        }
        match timeout_at(deadline, receiver).await {
            Ok(Ok(SubmissionResult::Done(replied))) => Attempt::Done(replied),
            Ok(Ok(SubmissionResult::NotLeader)) => Attempt::NotLeader,
            Ok(Ok(SubmissionResult::Shed)) => Attempt::Failed(overloaded),
            Ok(Ok(SubmissionResult::Unknown) | Err(_)) => Attempt::Failed(SubmitError::Unknown),
            Err(_) if ticket.withdraw() => {
                // Other commands were first, or this leader has had no contact with a quorum all
                // the while.
                let waited = start.elapsed().max(2 * self.parts.tuning.heartbeat);
                if self
                    .parts
                    .consensus
                    .has_led_within(waited.min(2 * self.parts.tuning.election_max))
                {
                    Attempt::Failed(overloaded)
                } else {
                    Attempt::NotLeader
                }
            }
            Err(_) => Attempt::Failed(SubmitError::Unknown),
        }
    }

    async fn forward_command(
        &self,
        leader: &Leader,
        envelope: &CommandEnvelope,
        deadline: Instant,
    ) -> Attempt<Replied> {
        self.counters.forwarded.fetch_add(1, Ordering::Relaxed);
        let body = forward_request::Body::Command(envelope.encode().into());
        match self
            .parts
            .links
            .forward(
                leader.node_id.0,
                &leader.peer_address,
                ForwardKind::Commands,
            )
            .ask(body, deadline)
            .await
        {
            Ok(forward_response::Answer::Reply(bytes)) => {
                codec::decode(&bytes).map_or(Attempt::Failed(SubmitError::Unknown), Attempt::Done)
            }
            Ok(forward_response::Answer::Overloaded(overloaded)) => {
                let retry_after_ms = overloaded.retry_after_ms;
                Attempt::Failed(SubmitError::Overloaded { retry_after_ms })
            }
            Ok(forward_response::Answer::DiskLow(_)) => Attempt::Failed(SubmitError::DiskLow),
            Err(ForwardError::QueueFull) => Attempt::Failed(SubmitError::Overloaded {
                retry_after_ms: RETRY_AFTER_MS,
            }),
            Ok(forward_response::Answer::NotLeader(_)) | Err(ForwardError::NotSent) => {
                Attempt::NotLeader
            }
            Ok(_) | Err(ForwardError::Lost) => Attempt::Failed(SubmitError::Unknown),
        }
    }
}

/// Refuses a command that does not fit into an entry.
fn check_bytes(bytes: usize) -> Result<(), SubmitError> {
    if bytes <= ENTRY_BYTES_MAX {
        return Ok(());
    }
    let bytes_max = ENTRY_BYTES_MAX;
    Err(SubmitError::TooLarge { bytes, bytes_max })
}
