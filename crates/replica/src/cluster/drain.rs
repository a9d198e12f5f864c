//! Drains a member: it keeps its vote and the log, but does not lead, and its node ends waiting calls, which
//! continue at other nodes.
//!
//! A drain is not stored: a restart ends it. The usual reason for a drain is work on the machine, which ends with a
//! restart; and a member that forgets its drain can only make the cluster more available.
//!
//! The leader evaluates a drain, one at a time, so that two concurrent drains cannot leave the cluster
//! without a voter that may lead. Ending one needs
//! no leader, because it may be what an election waits for.
//!
//! A drained voter may have an entry that no other voter in the quorum has, and then only it can be elected. So once there
//! has been no leader for longer than an election takes, it stands, and transfers leadership as soon as another voter has
//! caught up.

use crate::attempt::{Attempt, SubmitError};
use crate::cluster::change::{ChangeRefusal, ChangeResult};
use crate::cluster::leadership::Follower;
use crate::cluster::status;
use crate::core::Core;
use crate::membership::{StoredMembership, voters};
use crate::network::forward::{ForwardError, ForwardKind};
use crate::network::protocol::{SetDrained, StatusResponse, forward_request, forward_response};
use flotilla_engine::NodeId;
use futures::future::join_all;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::{Instant, MissedTickBehavior, interval};

impl Core {
    /// Drains a member, at the leader; false if it is drained already.
    pub(crate) async fn drain(
        &self,
        node_id: NodeId,
        stored: &StoredMembership,
        deadline: Instant,
    ) -> Attempt<ChangeResult> {
        let Some(member) = stored.get_node(&node_id.0) else {
            return Attempt::Done(Err(ChangeRefusal::NodeNotMember(node_id)));
        };
        match status::ask(self, node_id.0, &member.peer_address).await {
            None => return Attempt::Done(Err(ChangeRefusal::NodeUnresponsive(node_id))),
            Some(found) if found.drained => return Attempt::Done(Ok(false)),
            Some(_) => {}
        }
        if let Err(refusal) = self.check_other_voters(node_id, stored).await {
            return Attempt::Done(Err(refusal));
        }
        if node_id.0 == self.local.node_id {
            // The next leader executes the drain, so no caller waits for an election.
            return match self.transfer_leader(None, deadline).await {
                Attempt::Done(Ok(_)) => Attempt::NotLeader,
                ended => ended,
            };
        }
        let drained = self.send_drained(node_id, &member.peer_address, (true, deadline));
        let drained = drained.await;
        if matches!(drained, Attempt::Done(Ok(_))) {
            self.local.note_drained(node_id.0, true);
        }
        drained
    }

    /// Ends the drain of a member, from any node; false if it is not drained.
    pub(crate) async fn undrain(
        &self,
        node_id: NodeId,
        deadline: Instant,
    ) -> Attempt<ChangeResult> {
        if node_id.0 == self.local.node_id {
            return Attempt::Done(Ok(self.set_drained(false)));
        }
        let stored = self.consensus.membership();
        match stored.get_node(&node_id.0) {
            None => Attempt::Done(Err(ChangeRefusal::NodeNotMember(node_id))),
            Some(member) => {
                self.send_drained(node_id, &member.peer_address, (false, deadline))
                    .await
            }
        }
    }

    /// Drains this member, or ends its drain; false if it is so already.
    pub(crate) fn set_drained(&self, is_drained: bool) -> bool {
        let changed = self.drained.send_if_modified(|known| {
            self.allow_election(!is_drained);
            std::mem::replace(known, is_drained) != is_drained
        });
        let node_id = self.local.node_id;
        match (changed, is_drained) {
            (true, true) => tracing::warn!(node_id, "the node is drained until it restarts"),
            (true, false) => tracing::info!(node_id, "the node is no longer drained"),
            (false, _) => {}
        }
        changed
    }

    /// Whether this member is drained.
    pub(crate) fn is_drained(&self) -> bool {
        *self.drained.borrow()
    }

    /// Whether another member says that it is drained.
    pub(crate) async fn is_other_drained(&self, node_id: u64, stored: &StoredMembership) -> bool {
        let Some(member) = stored.get_node(&node_id) else {
            return false;
        };
        let found = status::ask(self, node_id, &member.peer_address).await;
        found.is_some_and(|found| found.drained)
    }

    /// Refuses a drain unless most voters respond, and one of the others may lead.
    async fn check_other_voters(
        &self,
        node_id: NodeId,
        stored: &StoredMembership,
    ) -> Result<(), ChangeRefusal> {
        let voters = voters(stored.membership());
        if !voters.contains(&node_id.0) {
            return Ok(());
        }
        let members = stored.nodes().filter(|(id, _)| voters.contains(id));
        let answers = members.map(|(id, member)| status::ask(self, *id, &member.peer_address));
        let found: Vec<StatusResponse> = join_all(answers).await.into_iter().flatten().collect();
        if found.len() * 2 <= voters.len() {
            return Err(ChangeRefusal::QuorumAtRisk {
                voters: voters.len() as u64,
                answering: found.len() as u64,
            });
        }
        let may_lead = |other: &StatusResponse| {
            other.node_id != node_id.0 && !other.drained && !other.diverged
        };
        match found.iter().any(may_lead) {
            true => Ok(()),
            false => Err(ChangeRefusal::NoVoterToLead(node_id)),
        }
    }

    async fn send_drained(
        &self,
        node_id: NodeId,
        peer_address: &str,
        (drained, deadline): (bool, Instant),
    ) -> Attempt<ChangeResult> {
        let link = self
            .links
            .forward(node_id.0, peer_address, ForwardKind::Control);
        let body = forward_request::Body::SetDrained(SetDrained { drained });
        match link.ask(body, deadline).await {
            Ok(forward_response::Answer::DrainedSet(set)) => Attempt::Done(Ok(set.changed)),
            Ok(forward_response::Answer::NotLeader(_))
            | Err(ForwardError::NotSent | ForwardError::QueueFull) => {
                Attempt::Done(Err(ChangeRefusal::NodeUnresponsive(node_id)))
            }
            Ok(_) | Err(ForwardError::Lost) => Attempt::Failed(SubmitError::Unknown),
        }
    }

    /// Keeps this member from standing for election until it ends, drained or not.
    pub(crate) fn forbid_elections(&self) {
        self.drained.send_if_modified(|_| {
            self.allow_election(false);
            false
        });
    }

    /// Must be called under the lock of `drained`, so that the last caller decides.
    fn allow_election(&self, is_allowed: bool) {
        let has_lost_tail = self.has_lost_tail.load(Ordering::Acquire);
        let elect = is_allowed && !has_lost_tail;
        self.raft.runtime_config().elect(elect);
    }

    /// Lets a drained member stand for election if otherwise there is no leader, and lead no longer than necessary.
    async fn keep_drained(&self) {
        let is_needed = !self.leader_contact.is_recent();
        // Under the lock of the state, so that the end of a drain cannot be missed.
        self.drained.send_if_modified(|is_drained| {
            self.allow_election(is_needed || !*is_drained);
            false
        });
        let may_yield = || {
            self.consensus
                .followers()
                .iter()
                .any(Follower::has_caught_up)
        };
        if self.leadership.borrow().is_self && may_yield() {
            self.hand_over().await;
        }
    }
}

/// Keeps a drained member from leading, unless no other voter can.
pub(crate) async fn watch_drain(core: Arc<Core>) {
    let mut drained = core.drained.subscribe();
    let mut ticks = interval(core.tuning.election_max);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while drained.wait_for(|is_drained| *is_drained).await.is_ok() {
        ticks.tick().await;
        if core.is_drained() {
            core.keep_drained().await;
        }
    }
}
