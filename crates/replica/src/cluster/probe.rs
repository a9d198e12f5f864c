//! Asks peers who they are.

use crate::cluster::formation_progress::FormationProgress;
use crate::membership::StoredMembership;
use crate::network::calls::PeerCalls;
use crate::network::links::Links;
use crate::network::local::{HOME_GROUP_ID, Local};
use crate::network::protocol::{ProbeRequest, ProbeResponse};
use crate::start_error::StartError;
use flotilla_engine::NodeId;
use futures::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// A peer that does not respond within this time counts as down.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// What responds at an address.
pub(crate) struct ProbedPeer {
    /// The node that the configuration expects there.
    pub(crate) expected: Option<NodeId>,
    pub(crate) address: String,
    pub(crate) found: ProbeResponse,
}

impl ProbedPeer {
    /// Whether it belongs to another cluster than `own`.
    pub(crate) fn is_foreign(&self, own: &str) -> bool {
        !self.found.cluster_id.is_empty() && self.found.cluster_id != own
    }
}

/// Asks peers who they are. Clones share what it depends on.
#[derive(Clone)]
pub(crate) struct Probes {
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
    pub(crate) progress: Arc<FormationProgress>,
}

impl Probes {
    /// Probes addresses, with the node that is expected at each. Those that do not respond in time are left out.
    pub(crate) async fn each<'a>(
        &self,
        targets: impl IntoIterator<Item = (Option<NodeId>, &'a String)>,
    ) -> Vec<ProbedPeer> {
        let pending = targets.into_iter().map(|(expected, address)| async move {
            Some(ProbedPeer {
                expected,
                address: address.clone(),
                found: self.probe(address).await?,
            })
        });
        let probed: Vec<ProbedPeer> = join_all(pending).await.into_iter().flatten().collect();
        let own = self.local.cluster_id();
        for peer in &probed {
            if own.is_none_or(|own| !peer.is_foreign(own)) {
                self.local.learn_hosts(&peer.found.members);
            }
        }
        probed
    }

    /// Asks a member or a first peer for its identity; `None` if there is no response in time.
    pub(crate) async fn probe(&self, address: &str) -> Option<ProbeResponse> {
        self.ask(self.links.calls(address).as_ref()).await
    }

    /// Like [`Probes::probe`], for an address that a caller has given: the connection is not kept.
    pub(crate) async fn probe_once(&self, address: &str) -> Option<ProbeResponse> {
        self.ask(self.links.connect(address).as_ref()).await
    }

    async fn ask(&self, peer: &dyn PeerCalls) -> Option<ProbeResponse> {
        let request = ProbeRequest {
            node_id: self.local.node_id,
            may_form: self.progress.is_requested() && self.local.cluster_id().is_none(),
            group_id: HOME_GROUP_ID,
        };
        send(request, peer).await
    }

    /// Whether a peer reports that this node was a member of its cluster and was removed.
    pub(crate) fn is_retired(&self, peer: &ProbeResponse) -> bool {
        let is_own = self
            .local
            .cluster_id()
            .is_none_or(|own| own == peer.cluster_id);
        is_own && peer.retired_node_ids.contains(&self.local.node_id)
    }

    /// Whether a member is up, with the data directory that the cluster knows.
    pub(crate) async fn is_reachable(&self, node_id: u64, stored: &StoredMembership) -> bool {
        let Some(member) = stored.get_node(&node_id) else {
            return false;
        };
        if node_id == self.local.node_id {
            return true;
        }
        let found = self.probe(&member.peer_address).await;
        found.is_some_and(|found| found.incarnation == member.incarnation)
    }
}

async fn send(request: ProbeRequest, peer: &dyn PeerCalls) -> Option<ProbeResponse> {
    let probed_peer = tokio::time::timeout(PROBE_TIMEOUT, peer.probe(request)).await;
    let found = probed_peer.ok()?.ok()?;
    // The members of another group say nothing about this one.
    (found.group_id == HOME_GROUP_ID).then_some(found)
}

/// Refuses to start beside another process of the same node: this process does not serve peers yet,
/// so any node that responds at this node's peer address is another one.
pub(crate) async fn check_alone(
    local: &Local,
    links: &Links,
    members: &StoredMembership,
) -> Result<(), StartError> {
    let Some(member) = members.get_node(&local.node_id) else {
        return Ok(());
    };
    let request = ProbeRequest {
        node_id: local.node_id,
        may_form: false,
        group_id: HOME_GROUP_ID,
    };
    let found = send(request, links.connect(&member.peer_address).as_ref()).await;
    match found {
        Some(found) if found.node_id == local.node_id && found.incarnation == local.incarnation => {
            Err(StartError::Twin {
                node_id: NodeId(local.node_id),
                address: member.peer_address.clone(),
            })
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses peers that belong to another cluster.
pub(crate) fn check_cluster(own: &str, probed: &[ProbedPeer]) -> Result<(), StartError> {
    match probed.iter().find(|peer| peer.is_foreign(own)) {
        Some(foreign) => Err(StartError::OtherCluster {
            own: own.to_owned(),
            other: foreign.found.cluster_id.clone(),
            address: foreign.address.clone(),
        }),
        None => Ok(()),
    }
}
