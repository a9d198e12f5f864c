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
use crate::cluster::candidacy::Candidacy;
use crate::cluster::change::{ChangeRefusal, ChangeResult};
use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::leader_contact::LeaderContact;
use crate::cluster::leadership::{Follower, Leadership};
use crate::cluster::status::StatusReports;
use crate::cluster::transfer::Transfers;
use crate::membership::{StoredMembership, voters};
use crate::network::forward::{ForwardError, ForwardKind};
use crate::network::links::Links;
use crate::network::local::Local;
use crate::network::protocol::{SetDrained, StatusResponse, forward_request, forward_response};
use flotilla_engine::NodeId;
use futures::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The drains that callers ask for, and the drain of this member.
#[derive(Clone)]
pub(crate) struct Drains {
    pub(crate) candidacy: Arc<Candidacy>,
    pub(crate) transfers: Transfers,
    pub(crate) status_reports: StatusReports,
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
    pub(crate) consensus: ConsensusView,
    pub(crate) leadership: watch::Receiver<Leadership>,
    pub(crate) leader_contact: Arc<LeaderContact>,
    /// The interval at which a drained member checks whether the cluster needs it to lead.
    pub(crate) election_max: Duration,
}

impl Drains {
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
        match self
            .status_reports
            .ask(node_id.0, &member.peer_address)
            .await
        {
            None => return Attempt::Done(Err(ChangeRefusal::NodeUnresponsive(node_id))),
            Some(found) if found.drained => return Attempt::Done(Ok(false)),
            Some(_) => {}
        }
        if let Err(refusal) = self.check_other_voters(node_id, stored).await {
            return Attempt::Done(Err(refusal));
        }
        if node_id.0 == self.local.node_id {
            // The next leader executes the drain, so no caller waits for an election.
            return match self.transfers.transfer_leader(None, deadline).await {
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
            return Attempt::Done(Ok(self.candidacy.set_drained(false)));
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
        let answers =
            members.map(|(id, member)| self.status_reports.ask(*id, &member.peer_address));
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

    /// Lets a drained member stand for election if otherwise there is no leader, and lead no longer than necessary.
    async fn keep_drained(&self) {
        let is_needed = !self.leader_contact.is_recent();
        self.candidacy.allow_if(is_needed);
        let may_yield = || {
            self.consensus
                .followers()
                .iter()
                .any(Follower::has_caught_up)
        };
        if self.leadership.borrow().is_self && may_yield() {
            self.transfers.hand_over().await;
        }
    }

    /// Keeps a drained member from leading, unless no other voter can.
    pub(crate) async fn watch(self) {
        let mut drained = self.candidacy.drained();
        let mut ticks = interval(self.election_max);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while drained.wait_for(|is_drained| *is_drained).await.is_ok() {
            ticks.tick().await;
            if self.candidacy.is_drained() {
                self.keep_drained().await;
            }
        }
    }
}
