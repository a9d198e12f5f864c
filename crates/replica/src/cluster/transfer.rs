//! Transfers leadership to another voter.

use crate::attempt::Attempt;
use crate::cluster::change::{ChangeRefusal, ChangeResult};
use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::leadership::{Follower, LAG_MAX, Leadership};
use crate::cluster::probe::Probes;
use crate::cluster::status::StatusReports;
use crate::membership::{StoredMembership, voters};
use crate::network::local::Local;
use crate::raft::type_config::ConsensusHandle;
use crate::tuning::Tuning;
use flotilla_engine::NodeId;
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// How often a lagging learner is checked: replication reports its progress more often than that.
const LAG_PAUSE: Duration = Duration::from_millis(20);

/// Transfers of leadership from this node. Clones share what they depend on.
#[derive(Clone)]
pub(crate) struct Transfers {
    pub(crate) local: Arc<Local>,
    pub(crate) raft: ConsensusHandle,
    pub(crate) consensus: ConsensusView,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) probes: Probes,
    pub(crate) status_reports: StatusReports,
    pub(crate) tuning: Tuning,
}

impl Transfers {
    /// If this node leads, transfers leadership to the follower that has most of the log, if that
    /// succeeds soon.
    pub(crate) async fn hand_over(&self) {
        if !self.leadership.borrow().is_self {
            return;
        }
        let deadline = Instant::now() + self.tuning.hand_over_timeout();
        if let Attempt::Done(Err(refusal)) = self.transfer_leader(None, deadline).await {
            tracing::info!(%refusal, "leadership was not transferred");
        }
    }

    /// Transfers leadership to another voter; false if it already leads. Only a leader can do this.
    pub(crate) async fn transfer_leader(
        &self,
        to: Option<NodeId>,
        deadline: Instant,
    ) -> Attempt<ChangeResult> {
        let own = NodeId(self.local.node_id);
        let stored = self.consensus.membership();
        let voters = voters(stored.membership());
        let successor = match to {
            Some(to) if stored.get_node(&to.0).is_none() => {
                return Attempt::Done(Err(ChangeRefusal::NodeNotMember(to)));
            }
            Some(to) if !voters.contains(&to.0) => {
                return Attempt::Done(Err(ChangeRefusal::NodeNotVoter(to)));
            }
            Some(to) if to == own => return Attempt::Done(Ok(false)),
            // A leader that was asked to transfer takes no more writes, whichever node takes over.
            Some(to) if !self.probes.is_reachable(to.0, &stored).await => {
                return Attempt::Done(Err(ChangeRefusal::LeadershipTransferTimeout));
            }
            Some(to) if self.status_reports.is_drained(to.0, &stored).await => {
                return Attempt::Done(Err(ChangeRefusal::VoterDrained(to)));
            }
            Some(to) => to.0,
            None if voters.len() < 2 => {
                return Attempt::Done(Err(ChangeRefusal::LastVoter(own)));
            }
            None => match self.successor(&stored).await {
                Some(successor) => successor,
                None => return Attempt::Done(Err(ChangeRefusal::LeadershipTransferTimeout)),
            },
        };
        // Until the successor has the whole log, the cluster neither reads nor writes.
        let caught_up = self.catch_up(NodeId(successor), deadline - self.tuning.take_over_time());
        match caught_up.await {
            None => return Attempt::NotLeader,
            Some(Err(refusal)) => return Attempt::Done(Err(refusal)),
            Some(Ok(())) => {}
        }
        // If consensus has ended, no voter takes over.
        drop(self.raft.trigger().transfer_leader(successor).await);
        let mut leadership = self.leadership.clone();
        let taken_over = leadership.wait_for(|leadership| {
            let leader = leadership.leader.as_ref();
            leader.is_some_and(|leader| leader.node_id != own)
        });
        match timeout_at(deadline, taken_over).await {
            Ok(Ok(now)) => {
                let leader = now.leader.as_ref().map(|leader| leader.node_id);
                // Another voter was faster: it is asked next.
                if to.is_some() && leader != to {
                    return Attempt::NotLeader;
                }
                Attempt::Done(Ok(true))
            }
            Ok(Err(_)) | Err(_) => Attempt::Done(Err(ChangeRefusal::LeadershipTransferTimeout)),
        }
    }

    /// The voter that follows most closely, unless it says that it is drained: after an election, a leader does not know
    /// that yet.
    async fn successor(&self, stored: &StoredMembership) -> Option<u64> {
        let mut followers = self.consensus.followers();
        followers.sort_by_key(|follower| Reverse(follower.matched));
        for Follower { node_id, .. } in followers {
            let is_drained = self.status_reports.is_drained(node_id, stored);
            let is_drained = timeout(self.tuning.heartbeat, is_drained).await;
            if !is_drained.unwrap_or(false) {
                return Some(node_id);
            }
        }
        None
    }

    /// Waits until a member has caught up; `None` if this node does not lead.
    pub(crate) async fn catch_up(
        &self,
        node_id: NodeId,
        deadline: Instant,
    ) -> Option<Result<(), ChangeRefusal>> {
        loop {
            let lag = self.consensus.lag_of(node_id)?;
            if lag <= LAG_MAX {
                return Some(Ok(()));
            }
            if Instant::now() >= deadline {
                return Some(Err(ChangeRefusal::NodeLagging { node_id, lag }));
            }
            tokio::time::sleep(LAG_PAUSE).await;
        }
    }
}
