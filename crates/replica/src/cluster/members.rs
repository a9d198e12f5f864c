//! Changing who belongs to the cluster: judged and carried out by the leader, one change at a time.
//!
//! What a change needs is looked at before anything is proposed, so that a refusal leaves nothing
//! behind. A change of voters is two entries of the log (a joint membership, then the new one);
//! should the leader die between them, [`finish_change`] lets its successor write the second.

use crate::cluster::change::{ChangeError, ChangeRefusal, ClusterChange, Judged};
use crate::cluster::formation;
use crate::cluster::leadership::{LAG_MAX, lag};
use crate::core::Core;
use crate::fatal::FatalError;
use crate::membership::{Member, StoredMembership, cluster_id, voters};
use crate::network::protocol::ProbeResponse;
use crate::raft::type_config::TypeConfig;
use crate::state::rows;
use crate::submit::{Attempt, SubmitError};
use flotilla_engine::{ENGINE_VERSION_FIRST, NodeId};
use futures::future::join_all;
use openraft::ChangeMembers;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::raft::Precondition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout_at};

/// The lock of the one change that may be under way; it goes with the change, not with who asked.
type ChangeTurn = OwnedMutexGuard<()>;

/// How often a learner that lags is looked at: replication tells its progress more often than is of
/// interest.
const LAG_PAUSE: Duration = Duration::from_millis(20);
/// What the last look at other members, and the answer's way back to whoever asked, take at most.
const ANSWER_TIME: Duration = Duration::from_millis(700);

type Change = ChangeMembers<u64, Member>;

impl Core {
    /// Makes a change, from any node; false when nothing had to change.
    pub(crate) async fn change(
        &self,
        change: ClusterChange,
        deadline: Instant,
    ) -> Result<bool, ChangeError> {
        let patience = self.patience(deadline);
        loop {
            let attempt = match self.destination(patience).await? {
                None => self.change_here(change.clone(), deadline).await,
                Some(leader) => self.forward_change(&leader, &change, deadline).await,
            };
            match attempt {
                Attempt::Done(judged) => return Ok(judged?),
                Attempt::Failed(error) => return Err(error.into()),
                Attempt::NotLeader => self.await_leader(patience).await?,
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
        let changing = Arc::clone(&self.changing);
        let Ok(turn) = timeout_at(deadline, changing.lock_owned()).await else {
            return Attempt::Done(Err(ChangeRefusal::ChangeUnderWay));
        };
        let stored = match timeout_at(deadline, self.settled_membership()).await {
            Ok(Attempt::Done(Some(stored))) => stored,
            Ok(Attempt::Done(None)) => {
                return Attempt::Done(Err(ChangeRefusal::ChangeUnderWay));
            }
            Ok(Attempt::NotLeader) | Err(_) => return Attempt::NotLeader,
            Ok(Attempt::Failed(error)) => return Attempt::Failed(error),
        };
        let basis = Basis {
            stored,
            turn,
            deadline,
        };
        match change {
            ClusterChange::AddLearner {
                node_id,
                peer_address,
            } => self.add_learner(node_id, peer_address, basis).await,
            ClusterChange::PromoteLearner { node_id } => self.promote(node_id, basis).await,
            ClusterChange::RemoveNode { node_id } => self.remove(node_id, basis).await,
            ClusterChange::TransferLeader { to } => self.transfer_leader(to, deadline).await,
        }
    }

    /// The members, agreed and applied, as a leader knows them that a quorum has just confirmed; `None`
    /// while a change of them is under way.
    async fn settled_membership(&self) -> Attempt<Option<Arc<StoredMembership>>> {
        match self.barrier.index(true).await {
            Ok(Some(_)) => {}
            Ok(None) => return Attempt::NotLeader,
            Err(_) => return Attempt::Failed(SubmitError::Shutdown),
        }
        let stored = self.membership();
        let applied = self.outlets.progress.borrow().log_id;
        let is_settled =
            *stored.log_id() <= applied && stored.membership().get_joint_config().len() < 2;
        Attempt::Done(is_settled.then_some(stored))
    }

    async fn add_learner(
        &self,
        node_id: NodeId,
        peer_address: String,
        basis: Basis,
    ) -> Attempt<Judged> {
        let stored = &basis.stored;
        match is_new(stored, node_id, &peer_address) {
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
        let agreed = *self.outlets.engine_version.borrow();
        let known = found.engine_version.max(ENGINE_VERSION_FIRST);
        if known < agreed {
            return Attempt::Done(Err(ChangeRefusal::BinaryTooOld {
                node_id,
                agreed,
                known,
            }));
        }
        let member = Member {
            cluster_id,
            peer_address,
            client_address: found.client_address,
            incarnation: found.incarnation,
        };
        let change = Change::AddNodes(BTreeMap::from([(node_id.0, member)]));
        self.propose(change, basis).await
    }

    async fn promote(&self, node_id: NodeId, basis: Basis) -> Attempt<Judged> {
        let stored = &basis.stored;
        let Some(member) = stored.get_node(&node_id.0) else {
            return Attempt::Done(Err(ChangeRefusal::NotAMember(node_id)));
        };
        let before = voters(stored.membership());
        if before.contains(&node_id.0) {
            return Attempt::Done(Ok(false));
        }
        // One that has ended lags by nothing until the next write, and could not help to commit.
        if !self.answers(node_id.0, stored).await {
            let address = member.peer_address.clone();
            return Attempt::Done(Err(ChangeRefusal::NodeUnreachable(address)));
        }
        // A voter that has yet to receive most of the log could not help to commit for as long.
        loop {
            match self.lag_of(node_id) {
                None => return Attempt::NotLeader,
                Some(lag) if lag <= LAG_MAX => break,
                Some(lag) if Instant::now() >= basis.deadline => {
                    return Attempt::Done(Err(ChangeRefusal::LearnerLags { node_id, lag }));
                }
                Some(_) => tokio::time::sleep(LAG_PAUSE).await,
            }
        }
        let mut after = before.clone();
        after.insert(node_id.0);
        if let Err(refusal) = self.check_quorums([before, after], stored).await {
            return Attempt::Done(Err(refusal));
        }
        let change = Change::AddVoterIds([node_id.0].into());
        self.propose(change, basis).await
    }

    async fn remove(&self, node_id: NodeId, basis: Basis) -> Attempt<Judged> {
        let stored = &basis.stored;
        if stored.get_node(&node_id.0).is_none() {
            return Attempt::Done(match self.is_retired(node_id) {
                true => Ok(false),
                false => Err(ChangeRefusal::NotAMember(node_id)),
            });
        }
        let before = voters(stored.membership());
        if !before.contains(&node_id.0) {
            let change = Change::RemoveNodes([node_id.0].into());
            return self.propose(change, basis).await;
        }
        let mut after = before.clone();
        after.remove(&node_id.0);
        if after.is_empty() {
            return Attempt::Done(Err(ChangeRefusal::LastVoter(node_id)));
        }
        if let Err(refusal) = self.check_quorums([before, after], stored).await {
            return Attempt::Done(Err(refusal));
        }
        if node_id.0 == self.local.node_id {
            // Whoever leads next carries it out: nobody then waits for an election.
            return match self.transfer_leader(None, basis.deadline).await {
                Attempt::Done(Ok(_)) => Attempt::NotLeader,
                ended => ended,
            };
        }
        let change = Change::RemoveVoters([node_id.0].into());
        self.propose(change, basis).await
    }

    /// Has the change written, and waits for it. A caller that goes away does not stop it midway.
    async fn propose(&self, change: Change, basis: Basis) -> Attempt<Judged> {
        let Basis {
            stored,
            turn,
            deadline,
        } = basis;
        let unchanged = Precondition::<TypeConfig>::LastMembershipLogId {
            last_membership_log_id: *stored.log_id(),
        };
        // Only this handle: a task that outlives the replica must not keep its stores open.
        let raft = self.raft.clone();
        let retain_as_learner = false;
        let changing = tokio::spawn(async move {
            let changed = raft
                .change_membership_if(change, retain_as_learner, [unchanged])
                .await;
            drop(turn);
            changed
        });
        match timeout_at(deadline, changing).await {
            Ok(Ok(Ok(_))) => Attempt::Done(Ok(true)),
            Ok(Ok(Err(RaftError::APIError(error)))) => {
                refused(error, self.membership().log_id() == stored.log_id())
            }
            Ok(Ok(Err(RaftError::Fatal(_))) | Err(_)) | Err(_) => {
                Attempt::Failed(SubmitError::Unknown)
            }
        }
    }

    /// Refuses a change unless most of the voters before it answer, and most of those after it: both are
    /// needed to agree on it, and one that finds no majority could not be taken back.
    ///
    /// They are asked: the last heartbeat of one that has just died may be too young to tell.
    async fn check_quorums(
        &self,
        sets: [BTreeSet<u64>; 2],
        stored: &StoredMembership,
    ) -> Result<(), ChangeRefusal> {
        let everybody: BTreeSet<u64> = sets.iter().flatten().copied().collect();
        let asked = everybody.into_iter().map(|node_id| async move {
            let answers = self.answers(node_id, stored).await;
            answers.then_some(node_id)
        });
        let answering: BTreeSet<u64> = join_all(asked).await.into_iter().flatten().collect();
        for voters in sets {
            let there = voters.intersection(&answering).count();
            if there * 2 <= voters.len() {
                return Err(ChangeRefusal::QuorumAtRisk {
                    voters: voters.len() as u64,
                    answering: there as u64,
                });
            }
        }
        Ok(())
    }

    /// Whether a member is up, on the data directory that the cluster knows.
    pub(crate) async fn answers(&self, node_id: u64, stored: &StoredMembership) -> bool {
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
        let matched = metrics.replication.as_ref()?.get(&node_id.0);
        let last = metrics.last_log_index.unwrap_or(0);
        Some(lag(matched.copied().flatten(), last))
    }

    /// The members as this node knows them, also when that is not committed yet.
    pub(crate) fn membership(&self) -> Arc<StoredMembership> {
        let metrics = self.raft.server_metrics();
        let metrics = metrics.borrow_watched();
        Arc::clone(&metrics.membership_config)
    }

    /// Whether this node belongs to a cluster, as far as its own log tells.
    pub(crate) fn is_member(&self) -> bool {
        self.membership().get_node(&self.local.node_id).is_some()
    }

    /// Whether the id was that of a member that was removed.
    pub(crate) fn is_retired(&self, node_id: NodeId) -> bool {
        // What cannot be read must not be used.
        self.retired()
            .is_none_or(|retired| retired.contains(&node_id.0))
    }

    /// The ids of the members that were removed, as far as this node has applied; `None` when that cannot
    /// be read, which ends the replica.
    pub(crate) fn retired(&self) -> Option<BTreeSet<u64>> {
        match rows::retired(self.store.reader().as_ref()) {
            Ok(retired) => Some(retired),
            Err(error) => {
                self.fail(FatalError::Consensus(error.to_string()));
                None
            }
        }
    }
}

/// What a change is judged on: it is written only while that still holds.
struct Basis {
    stored: Arc<StoredMembership>,
    turn: ChangeTurn,
    deadline: Instant,
}

/// At a leader that finds a change of voters half made by a former one: writes the second half.
pub(crate) fn finish_change(core: &Core) {
    if !core.leadership.borrow().is_ready {
        return;
    }
    let Ok(turn) = Arc::clone(&core.changing).try_lock_owned() else {
        return;
    };
    if core.membership().membership().get_joint_config().len() < 2 {
        return;
    }
    let raft = core.raft.clone();
    // Not awaited: it may take until a quorum is back.
    tokio::spawn(async move {
        let nothing_more = Change::AddVoterIds([].into());
        // Who lost the vote stays as a learner: whoever asked for the removal asks again.
        let retain_as_learner = true;
        match raft
            .change_membership(nothing_more, retain_as_learner)
            .await
        {
            Ok(_) => tracing::info!("a change of voters that a former leader began is finished"),
            Err(error) => tracing::debug!(%error, "a change of voters is not finished yet"),
        }
        drop(turn);
    });
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

/// What became of a change that consensus did not carry out to its end; unless the members are as they
/// were, a part of it may be written.
fn refused(error: ClientWriteError<TypeConfig>, is_unchanged: bool) -> Attempt<Judged> {
    match error {
        ClientWriteError::ForwardToLeader(_) if is_unchanged => Attempt::NotLeader,
        ClientWriteError::ChangeMembershipError(ChangeMembershipError::LearnerNotFound(lost)) => {
            Attempt::Done(Err(ChangeRefusal::NotAMember(NodeId(lost.node_id))))
        }
        // Another one came between: what was judged no longer holds.
        ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_)
            if is_unchanged =>
        {
            Attempt::Done(Err(ChangeRefusal::ChangeUnderWay))
        }
        ClientWriteError::ForwardToLeader(_)
        | ClientWriteError::LogEntryDiscarded(_)
        | ClientWriteError::ChangeMembershipError(_)
        | ClientWriteError::PreconditionFailed(_) => Attempt::Failed(SubmitError::Unknown),
    }
}
