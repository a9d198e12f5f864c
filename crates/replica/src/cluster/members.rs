//! Membership changes: evaluated and executed by the leader, one at a time.
//!
//! The leader checks everything before it proposes, so that a refusal changes nothing. A change of
//! voters is two log entries (a joint membership, then the new one); if the leader dies between
//! them, [`Changes::finish`] lets its successor write the second.

use crate::attempt::{Attempt, SubmitError};
use crate::cluster::change::{ChangeError, ChangeRefusal, ChangeResult, ClusterChange};
use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::drain::Drains;
use crate::cluster::leader_search::LeaderSearch;
use crate::cluster::leadership::{Leader, Leadership};
use crate::cluster::probe::Probes;
use crate::cluster::retired_ids::RetiredIds;
use crate::cluster::transfer::Transfers;
use crate::membership::{Member, StoredMembership, cluster_id, voters};
use crate::network::forward::{ForwardError, ForwardKind};
use crate::network::links::Links;
use crate::network::local::Local;
use crate::network::protocol::{ProbeResponse, forward_request, forward_response};
use crate::raft::type_config::{ConsensusHandle, TypeConfig};
use crate::read::ReadBarrier;
use crate::state::applier::AppliedState;
use flotilla_engine::{ENGINE_VERSION_FIRST, NodeId, codec};
use futures::future::join_all;
use openraft::ChangeMembers;
use openraft::errors::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::raft::Precondition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::{Instant, timeout_at};

/// The lock of the one change in progress; it belongs to the change, not to its caller.
pub(crate) type ChangeTurn = OwnedMutexGuard<()>;

/// The maximum time of the last check of other members and of the response to the caller.
const ANSWER_TIME: Duration = Duration::from_millis(700);

type Change = ChangeMembers<u64, Member>;

/// Changes of the membership and of the leader.
pub(crate) struct Changes {
    parts: ChangeParts,
    /// Held during a membership change: one at a time.
    changing: Arc<Mutex<()>>,
}

/// What changes depend on.
pub(crate) struct ChangeParts {
    pub(crate) leader_search: LeaderSearch,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) barrier: ReadBarrier,
    pub(crate) applied_state: AppliedState,
    pub(crate) probes: Probes,
    pub(crate) transfers: Transfers,
    pub(crate) drains: Drains,
    pub(crate) retired_ids: RetiredIds,
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
    pub(crate) raft: ConsensusHandle,
    pub(crate) consensus: ConsensusView,
}

impl Changes {
    pub(crate) fn new(parts: ChangeParts) -> Self {
        Self {
            parts,
            changing: Arc::default(),
        }
    }

    /// Makes a change, from any node; false if nothing had to change.
    pub(crate) async fn change(
        &self,
        change: ClusterChange,
        deadline: Instant,
    ) -> Result<bool, ChangeError> {
        let leader_wait = self.parts.leader_search.leader_wait(deadline);
        loop {
            let attempt = match &change {
                // It needs no leader.
                ClusterChange::UndrainNode { node_id } => {
                    self.parts.drains.undrain(*node_id, deadline).await
                }
                change => match self.parts.leader_search.destination(leader_wait).await? {
                    None => self.change_here(change.clone(), deadline).await,
                    Some(leader) => self.forward_change(&leader, change, deadline).await,
                },
            };
            match attempt {
                Attempt::Done(judged) => return Ok(judged?),
                Attempt::Failed(error) => return Err(error.into()),
                Attempt::NotLeader => self.parts.leader_search.await_leader(leader_wait).await?,
            }
        }
    }

    async fn forward_change(
        &self,
        leader: &Leader,
        change: &ClusterChange,
        deadline: Instant,
    ) -> Attempt<ChangeResult> {
        let body = forward_request::Body::Change(codec::encode(change).into());
        match self
            .parts
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

    /// One attempt at this node, which should lead.
    pub(crate) async fn change_here(
        &self,
        change: ClusterChange,
        deadline: Instant,
    ) -> Attempt<ChangeResult> {
        // Entries of this leader's term give it everything that former leaders committed.
        if !self.parts.leadership.borrow().is_ready {
            return Attempt::NotLeader;
        }
        let deadline = deadline - ANSWER_TIME;
        let changing = Arc::clone(&self.changing);
        let Ok(turn) = timeout_at(deadline, changing.lock_owned()).await else {
            return Attempt::Done(Err(ChangeRefusal::MembershipChangeInProgress));
        };
        let stored = match timeout_at(deadline, self.settled_membership()).await {
            Ok(Attempt::Done(Some(stored))) => stored,
            Ok(Attempt::Done(None)) => {
                return Attempt::Done(Err(ChangeRefusal::MembershipChangeInProgress));
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
            ClusterChange::TransferLeader { to } => {
                self.parts.transfers.transfer_leader(to, deadline).await
            }
            ClusterChange::DrainNode { node_id } => {
                self.parts
                    .drains
                    .drain(node_id, &basis.stored, deadline)
                    .await
            }
            ClusterChange::UndrainNode { node_id } => {
                self.parts.drains.undrain(node_id, deadline).await
            }
        }
    }

    /// The members, committed and applied, at a leader that a quorum has just confirmed; `None`
    /// while a membership change is in progress.
    async fn settled_membership(&self) -> Attempt<Option<Arc<StoredMembership>>> {
        match self.parts.barrier.index(true).await {
            Ok(Some(_)) => {}
            Ok(None) => return Attempt::NotLeader,
            Err(_) => return Attempt::Failed(SubmitError::Shutdown),
        }
        let stored = self.parts.consensus.membership();
        let applied = self.parts.applied_state.applied_position.borrow().log_id;
        let is_settled =
            *stored.log_id() <= applied && stored.membership().get_joint_config().len() < 2;
        Attempt::Done(is_settled.then_some(stored))
    }

    async fn add_learner(
        &self,
        node_id: NodeId,
        peer_address: String,
        basis: Basis,
    ) -> Attempt<ChangeResult> {
        let stored = &basis.stored;
        match is_new(stored, node_id, &peer_address) {
            Ok(true) => {}
            judged => return Attempt::Done(judged),
        }
        if self.parts.retired_ids.contains(node_id) {
            return Attempt::Done(Err(ChangeRefusal::NodeIdRetired(node_id)));
        }
        let Some(found) = self.parts.probes.probe_once(&peer_address).await else {
            return Attempt::Done(Err(ChangeRefusal::NodeUnreachable(peer_address)));
        };
        let cluster_id = cluster_id(stored.membership()).unwrap_or_default();
        if let Err(refusal) = check_new(&found, node_id, &peer_address, &cluster_id) {
            return Attempt::Done(Err(refusal));
        }
        let agreed = *self.parts.applied_state.engine_version.borrow();
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

    async fn promote(&self, node_id: NodeId, basis: Basis) -> Attempt<ChangeResult> {
        let stored = &basis.stored;
        let Some(member) = stored.get_node(&node_id.0) else {
            return Attempt::Done(Err(ChangeRefusal::NodeNotMember(node_id)));
        };
        let before = voters(stored.membership());
        if before.contains(&node_id.0) {
            return Attempt::Done(Ok(false));
        }
        // A member that is down lags by nothing until the next write, and could not help to commit.
        if !self.parts.probes.is_reachable(node_id.0, stored).await {
            let address = member.peer_address.clone();
            return Attempt::Done(Err(ChangeRefusal::NodeUnreachable(address)));
        }
        // A voter that has yet to receive most of the log could not help to commit until then.
        match self.parts.transfers.catch_up(node_id, basis.deadline).await {
            None => return Attempt::NotLeader,
            Some(Err(refusal)) => return Attempt::Done(Err(refusal)),
            Some(Ok(())) => {}
        }
        let mut after = before.clone();
        after.insert(node_id.0);
        if let Err(refusal) = self.check_quorums([before, after], stored).await {
            return Attempt::Done(Err(refusal));
        }
        let change = Change::AddVoterIds([node_id.0].into());
        self.propose(change, basis).await
    }

    async fn remove(&self, node_id: NodeId, basis: Basis) -> Attempt<ChangeResult> {
        let stored = &basis.stored;
        if stored.get_node(&node_id.0).is_none() {
            return Attempt::Done(match self.parts.retired_ids.contains(node_id) {
                true => Ok(false),
                false => Err(ChangeRefusal::NodeNotMember(node_id)),
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
        if node_id.0 == self.parts.local.node_id {
            // The next leader executes it: so no caller waits for an election.
            return match self
                .parts
                .transfers
                .transfer_leader(None, basis.deadline)
                .await
            {
                Attempt::Done(Ok(_)) => Attempt::NotLeader,
                ended => ended,
            };
        }
        let change = Change::RemoveVoters([node_id.0].into());
        self.propose(change, basis).await
    }

    /// Has the change written, and waits for it. A caller that goes away does not stop it midway.
    async fn propose(&self, change: Change, basis: Basis) -> Attempt<ChangeResult> {
        let Basis {
            stored,
            turn,
            deadline,
        } = basis;
        let unchanged = Precondition::<TypeConfig>::LastMembershipLogId {
            last_membership_log_id: *stored.log_id(),
        };
        // Only this handle: a task that outlives the replica must not keep its stores open.
        let raft = self.parts.raft.clone();
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
            Ok(Ok(Err(RaftError::APIError(error)))) => refused(
                error,
                self.parts.consensus.membership().log_id() == stored.log_id(),
            ),
            Ok(Ok(Err(RaftError::Fatal(_))) | Err(_)) | Err(_) => {
                Attempt::Failed(SubmitError::Unknown)
            }
        }
    }

    /// Refuses a change unless most of the voters before it respond, and most of those after it:
    /// the change needs both majorities, and cannot be undone without one.
    ///
    /// They are probed: the last heartbeat of a voter that has just died may still look recent.
    async fn check_quorums(
        &self,
        sets: [BTreeSet<u64>; 2],
        stored: &StoredMembership,
    ) -> Result<(), ChangeRefusal> {
        let everybody: BTreeSet<u64> = sets.iter().flatten().copied().collect();
        let pending = everybody.into_iter().map(|node_id| async move {
            let is_reachable = self.parts.probes.is_reachable(node_id, stored).await;
            is_reachable.then_some(node_id)
        });
        let answering: BTreeSet<u64> = join_all(pending).await.into_iter().flatten().collect();
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

    /// At a leader that finds a change of voters half made by a former one: writes the second half.
    pub(crate) fn finish(&self) {
        if !self.parts.leadership.borrow().is_ready {
            return;
        }
        let Some(turn) = self.try_turn() else {
            return;
        };
        let stored = self.parts.consensus.membership();
        if stored.membership().get_joint_config().len() < 2 {
            return;
        }
        let raft = self.parts.raft.clone();
        // Not awaited: it may take until a quorum is back.
        tokio::spawn(async move {
            let nothing_more = Change::AddVoterIds([].into());
            // A node that lost its vote stays a learner: the caller of the removal retries.
            let retain_as_learner = true;
            match raft
                .change_membership(nothing_more, retain_as_learner)
                .await
            {
                Ok(_) => {
                    tracing::info!("a change of voters that a former leader began is finished")
                }
                Err(error) => tracing::debug!(%error, "a change of voters is not finished yet"),
            }
            drop(turn);
        });
    }

    /// The lock of the one change in progress; `None` while there is one.
    pub(crate) fn try_turn(&self) -> Option<ChangeTurn> {
        Arc::clone(&self.changing).try_lock_owned().ok()
    }
}

/// The state on which a change was evaluated: it is written only while that still holds.
struct Basis {
    stored: Arc<StoredMembership>,
    turn: ChangeTurn,
    deadline: Instant,
}

/// Whether the node is to be added; false if it is already a member.
fn is_new(stored: &StoredMembership, node_id: NodeId, peer_address: &str) -> ChangeResult {
    if let Some(member) = stored.get_node(&node_id.0) {
        if member.peer_address == peer_address {
            return Ok(false);
        }
        let address = member.peer_address.clone();
        return Err(ChangeRefusal::NodeIdInUse { node_id, address });
    }
    let mut members = stored.nodes();
    let holder = members.find(|(_, member)| member.peer_address == peer_address);
    match holder {
        None => Ok(true),
        Some((holder, _)) => Err(ChangeRefusal::AddressInUse {
            address: peer_address.to_owned(),
            node_id: NodeId(*holder),
        }),
    }
}

/// Checks that the expected node responds, and that it has no data of another cluster.
fn check_new(
    found: &ProbeResponse,
    expected: NodeId,
    address: &str,
    cluster_id: &str,
) -> Result<(), ChangeRefusal> {
    if found.node_id != expected.0 {
        return Err(ChangeRefusal::NodeMismatch {
            address: address.to_owned(),
            expected,
            found: NodeId(found.node_id),
        });
    }
    // It may know this cluster already, from an addition that was not committed.
    if found.empty || found.cluster_id == cluster_id {
        return Ok(());
    }
    Err(ChangeRefusal::NodeNotEmpty(expected))
}

/// The result of a change that consensus did not complete; unless the members are unchanged, a part
/// of it may be written.
fn refused(error: ClientWriteError<TypeConfig>, is_unchanged: bool) -> Attempt<ChangeResult> {
    match error {
        ClientWriteError::ForwardToLeader(_) if is_unchanged => Attempt::NotLeader,
        ClientWriteError::ChangeMembershipError(ChangeMembershipError::LearnerNotFound(lost)) => {
            Attempt::Done(Err(ChangeRefusal::NodeNotMember(NodeId(lost.node_id))))
        }
        // Another change came first: the evaluation no longer holds.
        ClientWriteError::ChangeMembershipError(_) | ClientWriteError::PreconditionFailed(_)
            if is_unchanged =>
        {
            Attempt::Done(Err(ChangeRefusal::MembershipChangeInProgress))
        }
        ClientWriteError::ForwardToLeader(_)
        | ClientWriteError::LogEntryDiscarded(_)
        | ClientWriteError::ChangeMembershipError(_)
        | ClientWriteError::PreconditionFailed(_) => Attempt::Failed(SubmitError::Unknown),
    }
}
