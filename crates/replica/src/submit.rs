//! Submitting commands from any node: here at the leader, elsewhere by forwarding.
//!
//! What certainly was not proposed is tried again until the deadline; what may have been is answered
//! as unknown, never as failed (design rule 9).

use crate::batch::queue::{Answer, Submission, Ticket};
use crate::cluster::change::{ClusterChange, Judged};
use crate::cluster::leadership::Leader;
use crate::core::Core;
use crate::network::forward::ForwardError;
use crate::network::protocol::{forward_request, forward_response};
use crate::proposal::{Control, Proposal};
use flotilla_engine::codec;
use flotilla_engine::limits::ENTRY_BYTES_MAX;
use flotilla_engine::{Command, Rejection, Reply};
use openraft::errors::{ClientWriteError, RaftError};
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// How long after a refusal for lack of room it is worth trying again.
const RETRY_AFTER_MS: u64 = 100;
/// How long a missing leader is waited for before the question is asked again.
const PAUSE: Duration = Duration::from_millis(25);

/// Why a command has no answer from the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Certainly not done: too much waits.
    #[error("too many commands wait; try again in {retry_after_ms} ms")]
    Overloaded {
        /// When to try again, in milliseconds.
        retry_after_ms: u64,
    },
    /// Certainly not done: no leader took it within the deadline, or for as long as an election may
    /// take.
    #[error("no leader took the command in time")]
    NoLeader,
    /// Certainly not done: this node waits to be taken in, or for its cluster to be founded.
    #[error("this node is not a member of a cluster yet")]
    NotAMember,
    /// It may have been done, or may still be.
    #[error("it is unknown whether the command was carried out")]
    Unknown,
    /// Certainly not done: the leader's disk, or those of too many members, are nearly full.
    #[error("the disks of too many members are nearly full")]
    DiskLow,
    /// Certainly not done: it is larger than an entry of the log.
    #[error("expected a command of at most {bytes_max} bytes, but it has {bytes}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// Certainly not done: not every member knows this command yet (design rule 12).
    #[error("the command needs engine version {needed}, but the cluster has agreed on {agreed}")]
    EngineVersionLow {
        /// What the command came with.
        needed: u32,
        /// What all members know.
        agreed: u32,
    },
    /// Certainly not done: this replica stopped serving (design rule 11).
    #[error("this replica's state differs from the majority's")]
    Diverged,
    /// Certainly not done: the replica has ended.
    #[error("the replica has ended")]
    Shutdown,
}

/// How one attempt ended.
pub(crate) enum Attempt<T> {
    Done(T),
    /// Certainly not proposed; worth another attempt.
    NotLeader,
    Failed(SubmitError),
}

type Replied = Result<Reply, Rejection>;

impl Core {
    /// Has a command carried out.
    pub(crate) async fn submit(
        &self,
        command: Command,
        deadline: Instant,
    ) -> Result<Replied, SubmitError> {
        let bytes = encoded_bytes(&command);
        check_bytes(bytes)?;
        let patience = self.patience(deadline);
        self.await_agreed(command.body.since(), patience).await?;
        loop {
            let attempt = match self.destination(patience).await? {
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
                Attempt::NotLeader => self.await_leader(patience).await?,
            }
        }
    }

    /// Refuses what some members may not be able to read (design rule 12); it may be that they have just come to.
    async fn await_agreed(&self, needed: u32, patience: Instant) -> Result<(), SubmitError> {
        let mut agreed = self.outlets.engine_version.subscribe();
        let raised = timeout_at(patience, agreed.wait_for(|agreed| *agreed >= needed));
        match raised.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(SubmitError::Shutdown),
            Err(_) => {
                let agreed = *self.outlets.engine_version.borrow();
                Err(SubmitError::EngineVersionLow { needed, agreed })
            }
        }
    }

    /// One attempt at this node, which should lead.
    pub(crate) async fn submit_here(
        &self,
        command: Command,
        bytes: usize,
        deadline: Instant,
    ) -> Attempt<Replied> {
        // Another node's word for it is not enough: an entry that no message holds would end
        // replication.
        if let Err(error) = check_bytes(bytes) {
            return Attempt::Failed(error);
        }
        if let Err(error) = self.check_room(command.body.admission()) {
            return Attempt::Failed(error);
        }
        let ticket = Arc::<Ticket>::default();
        let (answer, receiver) = oneshot::channel();
        let submission = Submission {
            command,
            bytes,
            ticket: Arc::clone(&ticket),
            answer,
        };
        let start = Instant::now();
        let overloaded = SubmitError::Overloaded {
            retry_after_ms: RETRY_AFTER_MS,
        };
        if self.queue.push(submission).is_err() {
            return Attempt::Failed(overloaded);
        }
        match timeout_at(deadline, receiver).await {
            Ok(Ok(Answer::Done(replied))) => Attempt::Done(replied),
            Ok(Ok(Answer::NotLeader)) => Attempt::NotLeader,
            Ok(Ok(Answer::Unknown) | Err(_)) => Attempt::Failed(SubmitError::Unknown),
            Err(_) if ticket.withdraw() => {
                // Others were before it, or this leader has not heard from a quorum all the while.
                let waited = start.elapsed().max(2 * self.tuning.heartbeat);
                if self.has_led_within(waited.min(2 * self.tuning.election_max)) {
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
            .forward(&leader.peer_address)
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
            Ok(forward_response::Answer::NotLeader(_)) | Err(ForwardError::NotSent) => {
                Attempt::NotLeader
            }
            Ok(_) | Err(ForwardError::Lost) => Attempt::Failed(SubmitError::Unknown),
        }
    }

    /// Writes housekeeping to the log, from any node.
    pub(crate) async fn control(
        &self,
        control: Control,
        deadline: Instant,
    ) -> Result<(), SubmitError> {
        let patience = self.patience(deadline);
        loop {
            let attempt = match self.destination(patience).await? {
                None => self.control_here(control, deadline).await,
                Some(leader) => self.forward_control(&leader, control, deadline).await,
            };
            match attempt {
                Attempt::Done(()) => return Ok(()),
                Attempt::Failed(error) => return Err(error),
                Attempt::NotLeader => self.await_leader(patience).await?,
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
            .forward(&leader.peer_address)
            .ask(body, deadline)
            .await
        {
            Ok(forward_response::Answer::Done(_)) => Attempt::Done(()),
            Ok(forward_response::Answer::NotLeader(_)) | Err(ForwardError::NotSent) => {
                Attempt::NotLeader
            }
            Ok(_) | Err(ForwardError::Lost) => Attempt::Failed(SubmitError::Unknown),
        }
    }

    pub(crate) async fn forward_change(
        &self,
        leader: &Leader,
        change: &ClusterChange,
        deadline: Instant,
    ) -> Attempt<Judged> {
        let body = forward_request::Body::Change(codec::encode(change).into());
        match self
            .links
            .forward(&leader.peer_address)
            .ask(body, deadline)
            .await
        {
            Ok(forward_response::Answer::Judged(bytes)) => {
                codec::decode(&bytes).map_or(Attempt::Failed(SubmitError::Unknown), Attempt::Done)
            }
            Ok(forward_response::Answer::NotLeader(_)) | Err(ForwardError::NotSent) => {
                Attempt::NotLeader
            }
            Ok(_) | Err(ForwardError::Lost) => Attempt::Failed(SubmitError::Unknown),
        }
    }

    /// Until when a call with this deadline waits for a leader: its caller may have other nodes to ask,
    /// and one of them may have a leader.
    pub(crate) fn patience(&self, deadline: Instant) -> Instant {
        deadline.min(Instant::now() + self.tuning.leader_patience())
    }

    /// Who is to be asked, once somebody leads: the leader, or this node itself when it is it.
    pub(crate) async fn destination(
        &self,
        patience: Instant,
    ) -> Result<Option<Leader>, SubmitError> {
        loop {
            self.check_serving()?;
            let leadership = self.leadership.borrow().clone();
            match leadership.leader {
                Some(leader) if !leadership.is_self => return Ok(Some(leader)),
                // Without a quorum it would only make its log longer.
                Some(_) if self.is_led() => return Ok(None),
                None if !self.is_member() => return Err(SubmitError::NotAMember),
                Some(_) | None => self.await_leader(patience).await?,
            }
        }
    }

    /// Waits for a change of leadership, but not long: a leader may also be reachable again.
    pub(crate) async fn await_leader(&self, patience: Instant) -> Result<(), SubmitError> {
        let now = Instant::now();
        if now >= patience {
            return Err(SubmitError::NoLeader);
        }
        let mut leadership = self.leadership.subscribe();
        leadership.mark_unchanged();
        let until = patience.min(now + PAUSE);
        tokio::select! {
            // Either way the next attempt finds out.
            _ = timeout_at(until, leadership.changed()) => Ok(()),
            () = self.shutdown.cancelled() => Err(SubmitError::Shutdown),
        }
    }

    fn check_serving(&self) -> Result<(), SubmitError> {
        if self.shutdown.is_cancelled() {
            return Err(SubmitError::Shutdown);
        }
        if self.is_diverged() {
            return Err(SubmitError::Diverged);
        }
        Ok(())
    }
}

/// Refuses what no entry may hold.
fn check_bytes(bytes: usize) -> Result<(), SubmitError> {
    if bytes <= ENTRY_BYTES_MAX {
        return Ok(());
    }
    let bytes_max = ENTRY_BYTES_MAX;
    Err(SubmitError::TooLarge { bytes, bytes_max })
}

/// How many bytes a command or an offer adds to an entry.
pub(crate) fn encoded_bytes(part: &impl Serialize) -> usize {
    let mut counter = ByteCounter(0);
    bincode::serde::encode_into_std_write(part, &mut counter, bincode::config::standard())
        .expect("an entry's parts hold only what bincode encodes, and counting takes every byte");
    counter.0
}

struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
