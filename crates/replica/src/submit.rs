//! Submits commands from any node: executes them here at the leader, or forwards them to it.
//!
//! A command that certainly was not proposed is retried until the deadline; one that may have been
//! is reported as unknown, never as failed (design rule 9).

use crate::attempt::{Attempt, SubmitError};
use crate::batch::queue::{Arrival, Submission, SubmissionResult, Ticket};
use crate::cluster::change::{ChangeResult, ClusterChange};
use crate::cluster::leadership::Leader;
use crate::core::Core;
use crate::network::forward::{ForwardError, ForwardKind};
use crate::network::protocol::{forward_request, forward_response};
use crate::proposal::{Control, Proposal, encoded_bytes};
use flotilla_engine::codec;
use flotilla_engine::limits::ENTRY_BYTES_MAX;
use flotilla_engine::{Command, Rejection, Reply};
use openraft::errors::{ClientWriteError, RaftError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// The retry delay for a shed command.
const RETRY_AFTER_MS: u64 = 100;
/// How long to wait for a leader before the next attempt.
const PAUSE: Duration = Duration::from_millis(25);

type Replied = Result<Reply, Rejection>;

impl Core {
    /// Submits a command.
    pub(crate) async fn submit(
        &self,
        command: Command,
        deadline: Instant,
    ) -> Result<Replied, SubmitError> {
        let bytes = encoded_bytes(&command);
        check_bytes(bytes)?;
        let leader_wait = self.leader_wait(deadline);
        self.await_agreed(command.body.since(), leader_wait).await?;
        loop {
            let attempt = match self.destination(leader_wait).await? {
                None => self.submit_here(command.clone(), bytes, deadline).await,
                Some(leader) => self.forward_command(&leader, &command, deadline).await,
            };
            match attempt {
                Attempt::Done(replied) => return Ok(replied),
                Attempt::Failed(error) => {
                    if matches!(error, SubmitError::Overloaded { .. } | SubmitError::DiskLow) {
                        self.submit_counters.refused.fetch_add(1, Ordering::Relaxed);
                    }
                    return Err(error);
                }
                Attempt::NotLeader => self.await_leader(leader_wait).await?,
            }
        }
    }

    /// Refuses a command that some members may not be able to decode (design rule 12), unless they
    /// have just been upgraded.
    async fn await_agreed(&self, needed: u32, leader_wait: Instant) -> Result<(), SubmitError> {
        let mut agreed = self.applied_state.engine_version.subscribe();
        let raised = timeout_at(leader_wait, agreed.wait_for(|agreed| *agreed >= needed));
        match raised.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(SubmitError::Shutdown),
            Err(_) => {
                let agreed = *self.applied_state.engine_version.borrow();
                Err(SubmitError::EngineVersionTooLow { needed, agreed })
            }
        }
    }

    /// One attempt at this node, which should lead. A command that finds the budget of its entry used up is proposed
    /// again in a later one, until the deadline.
    pub(crate) async fn submit_here(
        &self,
        command: Command,
        bytes: usize,
        deadline: Instant,
    ) -> Attempt<Replied> {
        // Checked again here: an entry that does not fit into a message would end replication.
        if let Err(error) = check_bytes(bytes) {
            return Attempt::Failed(error);
        }
        if let Err(error) = self.disk.check(command.body.admission()) {
            return Attempt::Failed(error);
        }
        let arrival = self.queue.arrive();
        if !command.body.kind().needs_budget() {
            return self.propose_here(command, bytes, arrival, deadline).await;
        }
        loop {
            let command = command.clone();
            match self.propose_here(command, bytes, arrival, deadline).await {
                Attempt::Done(Err(Rejection::EntryFull)) if Instant::now() < deadline => {}
                attempt => return attempt,
            }
        }
    }

    /// Puts a command into the queue for the next entry, and waits for its result.
    async fn propose_here(
        &self,
        command: Command,
        bytes: usize,
        arrival: Arrival,
        deadline: Instant,
    ) -> Attempt<Replied> {
        let ticket = Arc::<Ticket>::default();
        let (result_sender, receiver) = oneshot::channel();
        let submission = Submission {
            command,
            bytes,
            ticket: Arc::clone(&ticket),
            result_sender,
            arrival,
        };
        let start = Instant::now();
        let overloaded = SubmitError::Overloaded {
            retry_after_ms: RETRY_AFTER_MS,
        };
        if self.queue.push(submission).is_err() {
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
                let waited = start.elapsed().max(2 * self.tuning.heartbeat);
                if self
                    .consensus
                    .has_led_within(waited.min(2 * self.tuning.election_max))
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
        command: &Command,
        deadline: Instant,
    ) -> Attempt<Replied> {
        self.submit_counters
            .forwarded
            .fetch_add(1, Ordering::Relaxed);
        let body = forward_request::Body::Command(command.encode().into());
        match self
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

    /// Writes a control record to the log, from any node.
    pub(crate) async fn control(
        &self,
        control: Control,
        deadline: Instant,
    ) -> Result<(), SubmitError> {
        let leader_wait = self.leader_wait(deadline);
        loop {
            let attempt = match self.destination(leader_wait).await? {
                None => self.control_here(control, deadline).await,
                Some(leader) => self.forward_control(&leader, control, deadline).await,
            };
            match attempt {
                Attempt::Done(()) => return Ok(()),
                Attempt::Failed(error) => return Err(error),
                Attempt::NotLeader => self.await_leader(leader_wait).await?,
            }
        }
    }

    /// One attempt at this node, which should lead.
    pub(crate) async fn control_here(&self, control: Control, deadline: Instant) -> Attempt<()> {
        let write = self.raft.client_write(Proposal::Control(control));
        match timeout_at(deadline, write).await {
            Ok(Ok(_)) => Attempt::Done(()),
            Ok(Err(RaftError::APIError(ClientWriteError::ForwardToLeader(_)))) => {
                Attempt::NotLeader
            }
            Ok(Err(_)) | Err(_) => Attempt::Failed(SubmitError::Unknown),
        }
    }

    async fn forward_control(
        &self,
        leader: &Leader,
        control: Control,
        deadline: Instant,
    ) -> Attempt<()> {
        let body = forward_request::Body::Control(control.encode().into());
        match self
            .links
            .forward(leader.node_id.0, &leader.peer_address, ForwardKind::Control)
            .ask(body, deadline)
            .await
        {
            Ok(forward_response::Answer::Done(_)) => Attempt::Done(()),
            Ok(forward_response::Answer::NotLeader(_))
            | Err(ForwardError::NotSent | ForwardError::QueueFull) => Attempt::NotLeader,
            Ok(_) | Err(ForwardError::Lost) => Attempt::Failed(SubmitError::Unknown),
        }
    }

    pub(crate) async fn forward_change(
        &self,
        leader: &Leader,
        change: &ClusterChange,
        deadline: Instant,
    ) -> Attempt<ChangeResult> {
        let body = forward_request::Body::Change(codec::encode(change).into());
        match self
            .links
            .forward(leader.node_id.0, &leader.peer_address, ForwardKind::Control)
            .ask(body, deadline)
            .await
        {
            Ok(forward_response::Answer::ChangeResult(bytes)) => {
                codec::decode(&bytes).map_or(Attempt::Failed(SubmitError::Unknown), Attempt::Done)
            }
            Ok(forward_response::Answer::NotLeader(_))
            | Err(ForwardError::NotSent | ForwardError::QueueFull) => Attempt::NotLeader,
            Ok(_) | Err(ForwardError::Lost) => Attempt::Failed(SubmitError::Unknown),
        }
    }

    /// Until when a call with this deadline waits for a leader: its caller may have other nodes to
    /// try, and one of them may have a leader.
    pub(crate) fn leader_wait(&self, deadline: Instant) -> Instant {
        deadline.min(Instant::now() + self.tuning.leader_timeout())
    }

    /// The node to ask, once there is a leader: the leader, or this node itself if it leads.
    pub(crate) async fn destination(
        &self,
        leader_wait: Instant,
    ) -> Result<Option<Leader>, SubmitError> {
        loop {
            self.lifecycle.check_serving()?;
            let leadership = self.leadership.borrow().clone();
            match leadership.leader {
                Some(leader) if !leadership.is_self => return Ok(Some(leader)),
                // Without a quorum it would only make its log longer.
                Some(_) if self.leader_contact.is_recent() => return Ok(None),
                None if !self.consensus.is_member() => return Err(SubmitError::NodeNotMember),
                Some(_) | None => self.await_leader(leader_wait).await?,
            }
        }
    }

    /// Waits for a change of leadership, but not long: a leader may also become reachable again.
    pub(crate) async fn await_leader(&self, leader_wait: Instant) -> Result<(), SubmitError> {
        let now = Instant::now();
        if now >= leader_wait {
            return Err(SubmitError::NoLeader);
        }
        let mut leadership = self.leadership.subscribe();
        leadership.mark_unchanged();
        let until = leader_wait.min(now + PAUSE);
        tokio::select! {
            // Either way, the next attempt shows it.
            _ = timeout_at(until, leadership.changed()) => Ok(()),
            () = self.lifecycle.ended() => Err(SubmitError::Shutdown),
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
