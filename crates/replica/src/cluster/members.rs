//! Changing who belongs to the cluster: judged and carried out by the leader, one change at a time.
//!
//! What a change needs is looked at before anything is proposed, so that a refusal leaves nothing
//! behind. A change of voters is two entries of the log (a joint membership, then the new one);
//! should the leader die between them, [`finish_change`] lets its successor write the second.

use crate::cluster::change::{ChangeError, ChangeRefusal, ClusterChange, Judged};
use crate::cluster::formation;
use crate::core::Core;
use crate::membership::{Member, StoredMembership, cluster_id, voters};
use crate::network::protocol::ProbeResponse;
use crate::raft::type_config::TypeConfig;
use crate::state::rows;
use crate::submit::{Attempt, SubmitError};
use flotilla_engine::NodeId;
use futures::future::join_all;
use openraft::ChangeMembers;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::raft::Precondition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A learner that is not further behind than this, when it is looked at, has caught up: what is left
/// takes as long as any write.
const LAG_MAX: u64 = 64;
/// How often it is looked at: replication tells its progress more often than is of interest.
const LAG_PAUSE: Duration = Duration::from_millis(20);
/// What an answer needs to get back to whoever asked.
const ANSWER_TIME: Duration = Duration::from_millis(200);

type Change = ChangeMembers<u64, Member>;

impl Core {
    /// Makes a change, from any node; false when nothing had to change.
    pub(crate) async fn change(
        &self,
        change: ClusterChange,
        deadline: Instant,
    ) -> Result<bool, ChangeError> {
        loop {
            let attempt = match self.destination(deadline).await? {
                None => self.change_here(change.clone(), deadline).await,
                Some(leader) => self.forward_change(&leader, &change, deadline).await,
            };
            match attempt {
                Attempt::Done(judged) => return Ok(judged?),
                Attempt::Failed(error) => return Err(error.into()),
                Attempt::NotLeader => self.await_leader(deadline).await?,
            }
        }
    }

    /// One attempt at this node, which should lead.
    pub(crate) async fn change_here(
        &self,
        change: ClusterChange,
        deadline: Instant,
    ) -> Attempt<Judged> {
        // Entries of its own term tell it everything that former leaders committed.
        if !self.leadership.borrow().is_ready {
            return Attempt::NotLeader;
        }
        let deadline = deadline - ANSWER_TIME;
        let Ok(_turn) = timeout_at(deadline, self.changing.lock()).await else {
            return Attempt::Done(Err(ChangeRefusal::ChangeUnderWay));
        };
        match change {
            ClusterChange::AddLearner {
                node_id,
                peer_address,
            } => self.add_learner(node_id, peer_address, deadline).await,
            ClusterChange::PromoteLearner { node_id } => self.promote(node_id, deadline).await,
            ClusterChange::RemoveNode { node_id } => self.remove(node_id, deadline).await,
            ClusterChange::TransferLeader { to } => {
                Attempt::Done(self.transfer_leader(to, deadline).await)
            }
        }
    }

    async fn add_learner(
        &self,
        node_id: NodeId,
        peer_address: String,
        deadline: Instant,
    ) -> Attempt<Judged> {
        let stored = self.membership();
        match is_new(&stored, node_id, &peer_address) {
            Ok(true) => {}
            judged => return Attempt::Done(judged),
        }
        if self.is_retired(node_id) {
            return Attempt::Done(Err(ChangeRefusal::NodeIdRetired(node_id)));
        }
        let Some(found) = formation::probe(self, &peer_address).await else {
            return Attempt::Done(Err(ChangeRefusal::NodeUnreachable(peer_address)));
        };
        let cluster_id = cluster_id(stored.membership()).unwrap_or_default();
        if let Err(refusal) = check_new(&found, node_id, &peer_address, &cluster_id) {
            return Attempt::Done(Err(refusal));
        }
        let member = Member {
            cluster_id,
            peer_address,
            client_address: found.client_address,
            incarnation: found.incarnation,
        };
        let change = Change::AddNodes(BTreeMap::from([(node_id.0, member)]));
        self.propose(change, &stored, deadline).await
    }

    async fn promote(&self, node_id: NodeId, deadline: Instant) -> Attempt<Judged> {
        let stored = self.membership();
        if stored.get_node(&node_id.0).is_none() {
            return Attempt::Done(Err(ChangeRefusal::NotAMember(node_id)));
        }
        if voters(stored.membership()).contains(&node_id.0) {
            return Attempt::Done(Ok(false));
        }
        // A voter that has yet to receive most of the log could not help to commit for as long.
        while let Some(lag) = self.lag_of(node_id).filter(|lag| *lag > LAG_MAX) {
            if Instant::now() >= deadline {
                return Attempt::Done(Err(ChangeRefusal::LearnerLags { node_id, lag }));
            }
            tokio::time::sleep(LAG_PAUSE).await;
        }
        let change = Change::AddVoterIds([node_id.0].into());
        self.propose(change, &stored, deadline).await
    }

    async fn remove(&self, node_id: NodeId, deadline: Instant) -> Attempt<Judged> {
        let stored = self.membership();
        if stored.get_node(&node_id.0).is_none() {
            return Attempt::Done(match self.is_retired(node_id) {
                true => Ok(false),
                false => Err(ChangeRefusal::NotAMember(node_id)),
            });
        }
        if !voters(stored.membership()).contains(&node_id.0) {
            let change = Change::RemoveNodes([node_id.0].into());
            return self.propose(change, &stored, deadline).await;
        }
        if let Err(refusal) = self.check_quorum_without(node_id, &stored).await {
            return Attempt::Done(Err(refusal));
        }
        if node_id.0 == self.local.node_id {
            // Whoever leads next carries it out: nobody then waits for an election.
            return match self.transfer_leader(None, deadline).await {
                Ok(_) => Attempt::NotLeader,
                Err(refusal) => Attempt::Done(Err(refusal)),
            };
        }
        let change = Change::RemoveVoters([node_id.0].into());
        self.propose(change, &stored, deadline).await
    }

    /// Has the change written, and waits for it. A caller that goes away does not stop it midway.
    async fn propose(
        &self,
        change: Change,
        judged_on: &StoredMembership,
        deadline: Instant,
    ) -> Attempt<Judged> {
        let unchanged = Precondition::<TypeConfig>::LastMembershipLogId {
            last_membership_log_id: *judged_on.log_id(),
        };
        // Only this handle: a task that outlives the replica must not keep its stores open.
        let raft = self.raft.clone();
        let retain_as_learner = false;
        let changing = tokio::spawn(async move {
            raft.change_membership_if(change, retain_as_learner, [unchanged])
                .await
        });
        match timeout_at(deadline, changing).await {
            Ok(Ok(Ok(_))) => Attempt::Done(Ok(true)),
            Ok(Ok(Err(RaftError::APIError(error)))) => refused(error),
            Ok(Ok(Err(RaftError::Fatal(_))) | Err(_)) | Err(_) => {
                Attempt::Failed(SubmitError::Unknown)
            }
        }
    }

    /// Refuses to take out a voter without which there is none, or too few of the rest answer.
    ///
    /// They are asked, since the last heartbeat of one that has just died may be too young to tell:
    /// a change that finds no majority could not be taken back.
    async fn check_quorum_without(
        &self,
        node_id: NodeId,
        stored: &StoredMembership,
    ) -> Result<(), ChangeRefusal> {
        let mut remaining = voters(stored.membership());
        remaining.remove(&node_id.0);
        if remaining.is_empty() {
            return Err(ChangeRefusal::LastVoter(node_id));
        }
        let asked = remaining.iter().map(|voter| self.answers(*voter, stored));
        let answers = join_all(asked).await;
        let answering = answers.into_iter().filter(|answers| *answers).count();
        if answering * 2 > remaining.len() {
            return Ok(());
        }
        Err(ChangeRefusal::QuorumAtRisk {
            voters: remaining.len() as u64,
            answering: answering as u64,
        })
    }

    async fn answers(&self, node_id: u64, stored: &StoredMembership) -> bool {
        let Some(member) = stored.get_node(&node_id) else {
            return false;
        };
        if node_id == self.local.node_id {
            return true;
        }
        let found = formation::probe(self, &member.peer_address).await;
        found.is_some_and(|found| found.incarnation == member.incarnation)
    }

    /// How many entries a member is behind this leader; `None` when this node does not lead.
    fn lag_of(&self, node_id: NodeId) -> Option<u64> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let matched = metrics.replication.as_ref()?.get(&node_id.0)?;
        let matched = matched.as_ref().map_or(0, |log_id| log_id.index());
        Some(metrics.last_log_index?.saturating_sub(matched))
    }

    /// The members as this node knows them, also when that is not committed yet.
    pub(crate) fn membership(&self) -> Arc<StoredMembership> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        Arc::clone(&metrics.membership_config)
    }

    /// Whether the id was that of a member that was removed.
    pub(crate) fn is_retired(&self, node_id: NodeId) -> bool {
        self.retired().contains(&node_id.0)
    }

    /// The ids of the members that were removed, as far as this node has applied.
    pub(crate) fn retired(&self) -> BTreeSet<u64> {
        rows::retired(self.store.reader().as_ref()).unwrap_or_else(|error| {
            // What reads the state next ends the process with this error.
            tracing::error!(%error, "the ids of removed members cannot be read");
            BTreeSet::new()
        })
    }
}

/// At a leader that finds a change of voters half made by a former one: writes the second half.
pub(crate) async fn finish_change(core: &Core) {
    if !core.leadership.borrow().is_ready {
        return;
    }
    let Ok(_turn) = core.changing.try_lock() else {
        return;
    };
    let stored = core.membership();
    if stored.membership().get_joint_config().len() < 2 {
        return;
    }
    let nothing_more = Change::AddVoterIds([].into());
    // Who lost the vote stays as a learner: whoever asked for the removal asks again.
    let retain_as_learner = true;
    match core
        .raft
        .change_membership(nothing_more, retain_as_learner)
        .await
    {
        Ok(_) => tracing::info!("a change of voters that a former leader began is finished"),
        Err(error) => tracing::debug!(%error, "a change of voters is not finished yet"),
    }
}

/// Whether the node is to be taken in; false when it is there already.
fn is_new(stored: &StoredMembership, node_id: NodeId, peer_address: &str) -> Judged {
    if let Some(member) = stored.get_node(&node_id.0) {
        if member.peer_address == peer_address {
            return Ok(false);
        }
        let address = member.peer_address.clone();
        return Err(ChangeRefusal::NodeIdTaken { node_id, address });
    }
    let mut members = stored.nodes();
    let holder = members.find(|(_, member)| member.peer_address == peer_address);
    match holder {
        None => Ok(true),
        Some((holder, _)) => Err(ChangeRefusal::AddressTaken {
            address: peer_address.to_owned(),
            node_id: NodeId(*holder),
        }),
    }
}

/// Checks that what answers is the node that is meant, and has no past elsewhere.
fn check_new(
    found: &ProbeResponse,
    expected: NodeId,
    address: &str,
    cluster_id: &str,
) -> Result<(), ChangeRefusal> {
    if found.node_id != expected.0 {
        return Err(ChangeRefusal::NodeDiffers {
            address: address.to_owned(),
            expected,
            found: NodeId(found.node_id),
        });
    }
    // It may know this cluster already, by an addition that was not committed.
    if found.is_empty || found.cluster_id == cluster_id {
        return Ok(());
    }
    Err(ChangeRefusal::NodeNotEmpty(expected))
}

fn refused(error: ClientWriteError<TypeConfig>) -> Attempt<Judged> {
    match error {
        // Repeating a change does no harm, so one that may have been written is tried again too.
        ClientWriteError::ForwardToLeader(_) | ClientWriteError::LogEntryDiscarded(_) => {
            Attempt::NotLeader
        }
        ClientWriteError::ChangeMembershipError(ChangeMembershipError::LearnerNotFound(lost)) => {
            Attempt::Done(Err(ChangeRefusal::NotAMember(NodeId(lost.node_id))))
        }
        // Another one came between, or is not committed yet: what was judged no longer holds.
        ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_) => {
            Attempt::Done(Err(ChangeRefusal::ChangeUnderWay))
        }
    }
}
