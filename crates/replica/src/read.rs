//! Linearizable reads from any node: one read-index round serves all waiting readers (design rule
//! 14).

use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::leader_contact::LeaderContact;
use crate::cluster::leadership::Leadership;
use crate::lifecycle::{Lifecycle, NotServing};
use crate::network::forward::{ForwardError, ForwardKind};
use crate::network::links::Links;
use crate::network::protocol::{ReadIndex, forward_request, forward_response};
use crate::raft::type_config::ConsensusHandle;
use crate::state::rows::AppliedPosition;
use flotilla_engine::store::StoreError;
use openraft::ReadPolicy;
use openraft::errors::RaftError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

/// The maximum of readers that wait for the next round.
const WAITING_MAX: usize = 16_384;
/// A round that takes longer has failed.
const ROUND_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a failed round.
const PAUSE: Duration = Duration::from_millis(20);

/// Why nothing can be read here now.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No leader confirmed what a linearizable read must see: within the deadline, or within the
    /// time of an election.
    #[error("no leader responded in time")]
    NoLeader,
    /// This node waits to be added, or for its cluster to be formed.
    #[error("this node is not a member of a cluster yet")]
    NodeNotMember,
    /// This node has not yet caught up with a leader since it started.
    #[error("this node has not caught up with its leader since it started")]
    NodeCatchingUp,
    /// Too many readers are waiting.
    #[error("too many readers are waiting")]
    Overloaded,
    /// This replica stopped serving (design rule 11).
    #[error("this replica's state differs from the majority's")]
    Diverged,
    /// The replica has ended.
    #[error("the replica has ended")]
    Shutdown,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<NotServing> for ReadError {
    fn from(reason: NotServing) -> Self {
        match reason {
            NotServing::Shutdown => Self::Shutdown,
            NotServing::Diverged => Self::Diverged,
        }
    }
}

/// A reader that waits for a round, and whether it may ask another node.
struct Waiter {
    index: oneshot::Sender<Option<u64>>,
    is_forwarded: bool,
}

/// Gathers readers for the next round.
#[derive(Clone)]
pub(crate) struct ReadBarrier {
    waiters: mpsc::Sender<Waiter>,
}

/// The readers that wait for the next round of [`ReadRounds`].
pub(crate) struct Waiters {
    receiver: mpsc::Receiver<Waiter>,
}

impl ReadBarrier {
    pub(crate) fn new() -> (Self, Waiters) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self { waiters: sender }, Waiters { receiver })
    }

    /// The index up to which a linearizable read must have applied; `None` if this round failed.
    pub(crate) async fn index(&self, is_forwarded: bool) -> Result<Option<u64>, ReadError> {
        let (index, receiver) = oneshot::channel();
        self.waiters
            .try_send(Waiter {
                index,
                is_forwarded,
            })
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => ReadError::Overloaded,
                mpsc::error::TrySendError::Closed(_) => ReadError::Shutdown,
            })?;
        receiver.await.map_err(|_| ReadError::Shutdown)
    }
}

/// What a round works with.
pub(crate) struct ReadRounds {
    pub(crate) raft: ConsensusHandle,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) links: Arc<Links>,
    pub(crate) leader_contact: Arc<LeaderContact>,
}

/// The result of a round, and whether this node leads.
#[derive(Clone, Copy)]
struct Round {
    index: u64,
    is_local: bool,
}

impl ReadRounds {
    /// Runs one round after another until the barrier is dropped. A reader that arrives during a
    /// round waits for the next: the current one may have been confirmed before the reader came.
    pub(crate) async fn run(self, mut waiters: Waiters) {
        let mut waiting = Vec::new();
        while waiters.receiver.recv_many(&mut waiting, WAITING_MAX).await > 0 {
            let index = tokio::time::timeout(ROUND_TIMEOUT, self.round())
                .await
                .ok()
                .flatten();
            if let Some(round) = index {
                self.leader_contact.confirm(round.index);
            }
            for waiter in waiting.drain(..) {
                let index = index.filter(|round| round.is_local || !waiter.is_forwarded);
                // A reader that is gone does not need the result.
                let _ = waiter.index.send(index.map(|round| round.index));
            }
        }
    }

    async fn round(&self) -> Option<Round> {
        let leadership = self.leadership.borrow().clone();
        if leadership.is_self {
            return match self.raft.get_read_linearizer(ReadPolicy::ReadIndex).await {
                Ok(linearizer) => Some(Round {
                    index: linearizer.read_log_id().index(),
                    is_local: true,
                }),
                Err(RaftError::APIError(_) | RaftError::Fatal(_)) => None,
            };
        }
        let leader = leadership.leader?;
        let link = self
            .links
            .forward(leader.node_id.0, &leader.peer_address, ForwardKind::Control);
        let body = forward_request::Body::ReadIndex(ReadIndex {});
        match link.ask(body, Instant::now() + ROUND_TIMEOUT).await {
            Ok(forward_response::Answer::ReadIndex(index)) => Some(Round {
                index,
                is_local: false,
            }),
            Ok(_) | Err(ForwardError::NotSent | ForwardError::QueueFull | ForwardError::Lost) => {
                None
            }
        }
    }
}

/// The reads of this node.
pub(crate) struct Reads {
    parts: ReadParts,
    readable: watch::Sender<bool>,
}

/// What the reads of a node depend on.
pub(crate) struct ReadParts {
    pub(crate) barrier: ReadBarrier,
    pub(crate) applied_position: watch::Receiver<AppliedPosition>,
    pub(crate) consensus: ConsensusView,
    pub(crate) lifecycle: Lifecycle,
    /// How long a read waits for a leader.
    pub(crate) leader_timeout: Duration,
}

impl Reads {
    /// Nothing is readable yet.
    pub(crate) fn new(parts: ReadParts) -> Self {
        Self {
            parts,
            readable: watch::Sender::new(false),
        }
    }

    /// Whether this node has caught up with a leader since it started.
    pub(crate) fn is_readable(&self) -> bool {
        *self.readable.borrow()
    }

    /// Reports when this node has caught up with a leader.
    pub(crate) fn readable(&self) -> watch::Receiver<bool> {
        self.readable.subscribe()
    }

    /// Notes that this node has caught up with a leader.
    pub(crate) fn set_readable(&self) {
        self.readable
            .send_if_modified(|is_readable| !std::mem::replace(is_readable, true));
    }

    /// Returns once this node has applied all that was committed when the call began.
    pub(crate) async fn read_index(&self, deadline: Instant) -> Result<(), ReadError> {
        let leader_wait = deadline.min(Instant::now() + self.parts.leader_timeout);
        loop {
            self.parts.lifecycle.check_serving()?;
            let indexed = timeout_at(deadline, self.parts.barrier.index(false)).await;
            let index = indexed.map_err(|_| ReadError::NoLeader)??;
            if let Some(index) = index {
                let mut applied_position = self.parts.applied_position.clone();
                let applied = applied_position
                    .wait_for(|applied_position| applied_position.index() >= Some(index));
                let applied = timeout_at(deadline, applied).await;
                applied
                    .map_err(|_| ReadError::NoLeader)?
                    .map_err(|_| ReadError::Shutdown)?;
                // The leader's own word on what is committed: a caller that received it may read
                // immediately.
                self.set_readable();
                return Ok(());
            }
            if !self.parts.consensus.is_member() {
                return Err(ReadError::NodeNotMember);
            }
            if Instant::now() + PAUSE >= leader_wait {
                return Err(ReadError::NoLeader);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
