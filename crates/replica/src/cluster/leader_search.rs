//! Finds the node that executes what a caller asks for: the leader.

use crate::attempt::SubmitError;
use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::leader_contact::LeaderContact;
use crate::cluster::leadership::{Leader, Leadership};
use crate::lifecycle::Lifecycle;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// How long to wait for a leader before the next attempt.
const PAUSE: Duration = Duration::from_millis(25);

/// Finds the leader. Clones share what it depends on.
#[derive(Clone)]
pub(crate) struct LeaderSearch {
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) leader_contact: Arc<LeaderContact>,
    pub(crate) consensus: ConsensusView,
    pub(crate) lifecycle: Lifecycle,
    /// How long a call waits for a leader.
    pub(crate) leader_timeout: Duration,
}

impl LeaderSearch {
    /// Until when a call with this deadline waits for a leader: its caller may have other nodes to
    /// try, and one of them may have a leader.
    pub(crate) fn leader_wait(&self, deadline: Instant) -> Instant {
        deadline.min(Instant::now() + self.leader_timeout)
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
        let mut leadership = self.leadership.clone();
        leadership.mark_unchanged();
        let until = leader_wait.min(now + PAUSE);
        tokio::select! {
            // Either way, the next attempt shows it.
            _ = timeout_at(until, leadership.changed()) => Ok(()),
            () = self.lifecycle.ended() => Err(SubmitError::Shutdown),
        }
    }
}
