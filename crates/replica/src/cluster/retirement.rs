//! Ends the replica of a node whose cluster no longer counts on it: of a removed member, and of one whose cluster was replaced
//! by another one.
//!
//! Most learn of their removal from the log. A member that was down meanwhile receives nothing
//! more, and cannot distinguish that from a silent leader; so every member that does not lead asks
//! the others from time to time. After a quorum was lost and a backup restored, another cluster responds at their addresses.
//! A member without a leader then ends, once the other cluster has the addresses of a majority. Before
//! that, the other cluster may be at a wrong address, and the quorum may only be late.

use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::leader_contact::LeaderContact;
use crate::cluster::probe::{ProbedPeer, Probes, check_cluster};
use crate::cluster::retired_ids::RetiredIds;
use crate::fatal::FatalError;
use crate::lifecycle::Lifecycle;
use crate::membership::StoredMembership;
use crate::network::links::Links;
use crate::network::local::Local;
use crate::start_error::StartError;
use flotilla_engine::NodeId;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// The interval of these requests.
const INTERVAL: Duration = Duration::from_secs(2);

/// What the watch works with.
pub(crate) struct RemovalWatch {
    pub(crate) membership: watch::Receiver<Arc<StoredMembership>>,
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
    pub(crate) probes: Probes,
    pub(crate) retired_ids: RetiredIds,
    pub(crate) consensus: ConsensusView,
    pub(crate) leader_contact: Arc<LeaderContact>,
    pub(crate) lifecycle: Lifecycle,
}

impl RemovalWatch {
    /// Ends the replica once it learns that it was removed, or that its cluster was replaced.
    pub(crate) async fn run(self) {
        let mut members = self.membership.clone();
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_tick = tokio::select! {
                changed = members.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.close_unused_links();
                    false
                }
                _ = ticks.tick() => true,
            };
            let refusal = match self.is_retired() {
                true => Some(StartError::Removed(NodeId(self.local.node_id))),
                false if is_tick => self.ask_others().await,
                false => None,
            };
            if let Some(refusal) = refusal {
                return self.lifecycle.fail(FatalError::Refused(refusal));
            }
        }
    }

    /// Closes the connections to nodes that are no longer members.
    fn close_unused_links(&self) {
        let membership = self.consensus.membership();
        let addresses = membership.nodes();
        let addresses = addresses.map(|(_, member)| member.peer_address.as_str());
        self.links.retain(&addresses.collect());
    }

    /// Whether this node has applied its own removal.
    fn is_retired(&self) -> bool {
        self.retired_ids.contains(NodeId(self.local.node_id))
    }

    /// Asks what responds at the addresses of the other members. Returns why this node must end, if it must.
    async fn ask_others(&self) -> Option<StartError> {
        let own = self.local.cluster_id()?;
        if self.consensus.is_leading() {
            return None;
        }
        let members = self.consensus.membership();
        let others = members
            .nodes()
            .filter(|(node_id, _)| **node_id != self.local.node_id);
        let targets =
            others.map(|(node_id, member)| (Some(NodeId(*node_id)), &member.peer_address));
        let probed = self.probes.each(targets).await;
        let mut found = probed.iter().map(|peer| &peer.found);
        if found.any(|found| self.probes.is_retired(found)) {
            return Some(StartError::Removed(NodeId(self.local.node_id)));
        }
        let other = check_cluster(own, &probed).err()?;
        if self.leader_contact.is_recent() || may_elect(&members, &foreign(own, &probed)) {
            tracing::warn!(node_id = self.local.node_id, "{other}");
            return None;
        }
        Some(other)
    }
}

/// The members at whose addresses another cluster responds.
fn foreign(own: &str, probed: &[ProbedPeer]) -> BTreeSet<u64> {
    let foreign = probed.iter().filter(|peer| peer.is_foreign(own));
    foreign
        .filter_map(|peer| peer.expected.map(|node_id| node_id.0))
        .collect()
}

/// Whether the voters without these could be a quorum.
fn may_elect(members: &StoredMembership, without: &BTreeSet<u64>) -> bool {
    let configs = members.membership().get_joint_config();
    configs.iter().all(|voters| {
        let left = voters.iter().filter(|voter| !without.contains(voter));
        left.count() > voters.len() / 2
    })
}
