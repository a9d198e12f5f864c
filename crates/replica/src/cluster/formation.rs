//! Forms a cluster or finds the one that was formed, and refuses nodes that must not take part.
//!
//! A node with an empty data directory may be new, or a member that lost its directory and with it
//! its votes. So every directory gets a random incarnation when it is created, the entry that forms
//! a cluster lists those of all members, and an empty node takes part only if the cluster knows its
//! incarnation, or if no peer knows a cluster at all. The node with the lowest id forms it.
//!
//! Several first members form a cluster only at an operator's request. They may be empty because they are new, or because
//! all have lost their data; only the operator knows. A request at any of them reaches the others with the probes.

use crate::core::Core;
use crate::membership::{Member, StoredMembership};
use crate::network::calls::PeerCalls;
use crate::network::links::{Links, Local};
use crate::network::protocol::{ProbeRequest, ProbeResponse};
use crate::start_error::StartError;
use flotilla_engine::NodeId;
use futures::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// A peer that does not respond within this time counts as down.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
const ROUND_PAUSE: Duration = Duration::from_millis(100);
/// How often a waiting node logs what it waits for.
const TELL_INTERVAL: Duration = Duration::from_secs(10);

/// How this node becomes a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formation {
    /// It is one of the first members. A single one forms its cluster when it starts; several wait for
    /// [`Replica::form`](crate::Replica::form) at one of them.
    Found {
        /// The peer address of every first member, this one included; the same list on each.
        peers: BTreeMap<NodeId, String>,
    },
    /// It is added later.
    Join {
        /// Peer addresses of members.
        seeds: Vec<String>,
    },
}

/// A cluster that is formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormedCluster {
    /// The cluster's id.
    pub cluster_id: String,
    /// Whether it was formed after the request; false if the node belonged to it before.
    pub is_new: bool,
}

/// Why a node does not belong to a cluster yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// Only first members form a cluster.
    #[error("expected one of the first members, but this node joins a cluster that others form")]
    NotFirstMember,
    /// The deadline has passed. The request remains in force until the node stops.
    #[error("no cluster is formed yet: {0}")]
    Waiting(String),
    /// The node has stopped.
    #[error("the node has stopped")]
    Shutdown,
}

/// What a node without a cluster knows about its formation.
#[derive(Debug)]
pub(crate) struct FormationProgress {
    /// The first members; empty on a node that joins.
    first_members: BTreeSet<u64>,
    /// Whether the first members may form a cluster.
    is_requested: AtomicBool,
    /// What the node waits for; `None` if it does not wait.
    awaited: watch::Sender<Option<String>>,
}

impl FormationProgress {
    /// The progress at the start of a node.
    pub(crate) fn new(formation: &Formation) -> Self {
        let first_members: BTreeSet<u64> = match formation {
            Formation::Found { peers } => peers.keys().map(|node_id| node_id.0).collect(),
            Formation::Join { .. } => BTreeSet::new(),
        };
        Self {
            is_requested: AtomicBool::new(first_members.len() == 1),
            first_members,
            awaited: watch::Sender::new(None),
        }
    }

    /// Notes that a first member was asked to form the cluster; the others may then form it, too.
    pub(crate) fn request_from(&self, node_id: u64) {
        if self.first_members.contains(&node_id) {
            self.is_requested.store(true, Ordering::Release);
        }
    }

    fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::Acquire)
    }
}

impl Core {
    /// Lets the first members form a cluster as soon as all of them respond and are empty, and waits until this node
    /// belongs to it.
    pub(crate) async fn form(&self, deadline: Instant) -> Result<FormedCluster, FormError> {
        let node_id = self.local.node_id;
        let is_new = !self.consensus.is_member();
        if is_new {
            if !self.formation.first_members.contains(&node_id) {
                return Err(FormError::NotFirstMember);
            }
            self.formation.request_from(node_id);
        }
        let formed = tokio::select! {
            () = self.lifecycle.ended() => return Err(FormError::Shutdown),
            formed = timeout_at(deadline, self.consensus.await_membership()) => formed,
        };
        match (formed, self.local.cluster_id()) {
            (Ok(()), Some(cluster_id)) => Ok(FormedCluster {
                cluster_id: cluster_id.to_owned(),
                is_new,
            }),
            (Ok(()), None) => Err(FormError::Shutdown),
            (Err(_), _) => Err(FormError::Waiting(self.awaited().unwrap_or_default())),
        }
    }

    /// What this node waits for before it belongs to a cluster; `None` if it does not wait.
    pub(crate) fn awaited(&self) -> Option<String> {
        self.formation.awaited.borrow().clone()
    }
}

/// The result of a round of probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// This node takes part.
    Settled,
    /// It does not yet; the text says what it waits for.
    Waiting(String),
}

/// Probes until this node takes part, and logs what it waits for.
pub(crate) async fn form(core: &Core, formation: &Formation) -> Result<(), StartError> {
    let mut last_logged: Option<Instant> = None;
    while let Round::Waiting(awaited) = round(core, formation).await? {
        core.formation.awaited.send_replace(Some(awaited.clone()));
        if last_logged.is_none_or(|last_logged| last_logged.elapsed() >= TELL_INTERVAL) {
            last_logged = Some(Instant::now());
            tracing::info!(node_id = core.local.node_id, "the node waits: {awaited}");
        }
        tokio::time::sleep(ROUND_PAUSE).await;
    }
    core.formation.awaited.send_replace(None);
    if matches!(formation, Formation::Join { .. }) && !core.consensus.is_member() {
        let node_id = core.local.node_id;
        tracing::info!(
            node_id,
            "the node waits to be added, by `flo cluster add-learner {node_id} HOST:PORT` with \
             the address at which the members reach its peer port"
        );
    }
    Ok(())
}

/// Probes all peers, and takes part if the result allows it.
pub(crate) async fn round(core: &Core, formation: &Formation) -> Result<Round, StartError> {
    let probed = probe_all(core, formation).await;
    if let Some(own) = core.local.cluster_id() {
        check_cluster(own, &probed)?;
        // It may have been down when it was removed.
        if probed
            .iter()
            .any(|probed_peer| is_retired(core, &probed_peer.found))
        {
            return Err(StartError::Removed(NodeId(core.local.node_id)));
        }
        core.admit();
        return Ok(Round::Settled);
    }
    // Only now: the first members of an existing cluster may have been replaced since.
    if let Formation::Found { .. } = formation {
        check_ids(&probed)?;
    }
    let known = probed
        .iter()
        .find(|probed_peer| !probed_peer.found.cluster_id.is_empty());
    match (known, formation) {
        (Some(known), _) => {
            // A member that lags may not know it yet.
            let is_retired = probed
                .iter()
                .any(|probed_peer| is_retired(core, &probed_peer.found));
            enter(core, formation, &known.found, is_retired)
        }
        // A node that has voted does not found: it waits for the founder that it voted for.
        (None, Formation::Found { peers }) if core.log.is_pristine() => {
            found(core, formation, peers, &probed).await
        }
        (None, _) => Ok(Round::Waiting(awaited(core, formation, &probed))),
    }
}

/// What a node without a cluster waits for.
fn awaited(core: &Core, formation: &Formation, probed: &[ProbedPeer]) -> String {
    let is_silent = |address: &String| {
        probed
            .iter()
            .all(|probed_peer| probed_peer.address != *address)
    };
    match formation {
        Formation::Join { seeds } => {
            let silent: Vec<&str> = seeds
                .iter()
                .filter(|seed| is_silent(seed))
                .map(String::as_str)
                .collect();
            if silent.is_empty() {
                return "the node to join through is not a member of a cluster yet".to_owned();
            }
            format!(
                "no member responds at {}, through which it is to join",
                silent.join(", ")
            )
        }
        Formation::Found { peers } => {
            let others = peers
                .iter()
                .filter(|(node_id, _)| node_id.0 != core.local.node_id);
            let silent = others.filter(|(_, address)| is_silent(address));
            let silent: Vec<String> = silent
                .map(|(node_id, address)| format!("node {} at {address}", node_id.0))
                .collect();
            match (silent.is_empty(), core.formation.is_requested()) {
                (true, true) => {
                    "all first members respond, and one of them forms the cluster".to_owned()
                }
                (true, false) => "all first members respond, and none belongs to a cluster: \
                     `flo cluster form` forms a new, empty one"
                    .to_owned(),
                (false, _) => format!(
                    "a cluster is formed by all its first members, but these do not respond: {}",
                    silent.join(", ")
                ),
            }
        }
    }
}

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

async fn probe_all(core: &Core, formation: &Formation) -> Vec<ProbedPeer> {
    let targets: Vec<(Option<NodeId>, &String)> = match formation {
        Formation::Found { peers } => peers
            .iter()
            .filter(|(node_id, _)| node_id.0 != core.local.node_id)
            .map(|(node_id, address)| (Some(*node_id), address))
            .collect(),
        Formation::Join { seeds } => seeds.iter().map(|address| (None, address)).collect(),
    };
    probe_each(core, targets).await
}

/// Probes addresses, with the node that is expected at each. Those that do not respond in time are left out.
pub(crate) async fn probe_each<'a>(
    core: &Core,
    targets: impl IntoIterator<Item = (Option<NodeId>, &'a String)>,
) -> Vec<ProbedPeer> {
    let pending = targets.into_iter().map(|(expected, address)| async move {
        Some(ProbedPeer {
            expected,
            address: address.clone(),
            found: probe(core, address).await?,
        })
    });
    let probed: Vec<ProbedPeer> = join_all(pending).await.into_iter().flatten().collect();
    let own = core.local.cluster_id();
    for peer in &probed {
        if own.is_none_or(|own| !peer.is_foreign(own)) {
            core.local.learn_hosts(&peer.found.members);
        }
    }
    probed
}

/// Asks a member or a first peer for its identity; `None` if there is no response in time.
pub(crate) async fn probe(core: &Core, address: &str) -> Option<ProbeResponse> {
    ask(core, core.links.calls(address).as_ref()).await
}

/// Like [`probe`], for an address that a caller has given: the connection is not kept.
pub(crate) async fn probe_once(core: &Core, address: &str) -> Option<ProbeResponse> {
    ask(core, core.links.connect(address).as_ref()).await
}

async fn ask(core: &Core, peer: &dyn PeerCalls) -> Option<ProbeResponse> {
    let request = ProbeRequest {
        node_id: core.local.node_id,
        may_form: core.formation.is_requested() && core.local.cluster_id().is_none(),
    };
    send(request, peer).await
}

async fn send(request: ProbeRequest, peer: &dyn PeerCalls) -> Option<ProbeResponse> {
    let probed_peer = tokio::time::timeout(PROBE_TIMEOUT, peer.probe(request)).await;
    probed_peer.ok()?.ok()
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

fn check_ids(probed: &[ProbedPeer]) -> Result<(), StartError> {
    for ProbedPeer {
        expected,
        address,
        found,
    } in probed
    {
        if let Some(expected) = expected
            && expected.0 != found.node_id
        {
            return Err(StartError::PeerIdDiffers {
                address: address.clone(),
                expected: *expected,
                found: NodeId(found.node_id),
            });
        }
    }
    Ok(())
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

/// Whether a peer reports that this node was a member of its cluster and was removed.
pub(crate) fn is_retired(core: &Core, peer: &ProbeResponse) -> bool {
    let is_own = core
        .local
        .cluster_id()
        .is_none_or(|own| own == peer.cluster_id);
    is_own && peer.retired_node_ids.contains(&core.local.node_id)
}

/// Takes part in an existing cluster, unless this directory is not the one that the cluster knows.
fn enter(
    core: &Core,
    formation: &Formation,
    known: &ProbeResponse,
    is_retired: bool,
) -> Result<Round, StartError> {
    let node_id = NodeId(core.local.node_id);
    let cluster_id = known.cluster_id.clone();
    let member = known
        .members
        .iter()
        .find(|member| member.node_id == node_id.0);
    match (member, formation) {
        (Some(member), _) if member.incarnation == core.local.incarnation => {}
        (Some(_), _) => {
            return Err(StartError::WipedMember {
                node_id,
                cluster_id,
            });
        }
        (None, _) if is_retired => {
            return Err(StartError::NodeIdRetired {
                node_id,
                cluster_id,
            });
        }
        (None, Formation::Found { .. }) => {
            return Err(StartError::NodeNotMember {
                node_id,
                cluster_id,
            });
        }
        (None, Formation::Join { .. }) => {}
    }
    core.local.enter(cluster_id);
    core.admit();
    Ok(Round::Settled)
}

/// Founds the cluster if that is requested, every peer is up and empty and this node has the lowest id.
async fn found(
    core: &Core,
    formation: &Formation,
    peers: &BTreeMap<NodeId, String>,
    probed: &[ProbedPeer],
) -> Result<Round, StartError> {
    let is_first = peers
        .first_key_value()
        .is_some_and(|(first, _)| first.0 == core.local.node_id);
    let all_empty = probed.len() + 1 == peers.len() && probed.iter().all(|a| a.found.empty);
    if !core.formation.is_requested() || !is_first || !all_empty {
        return Ok(Round::Waiting(awaited(core, formation, probed)));
    }
    let cluster_id = format!("{:032x}", rand::random::<u128>());
    let founder = (
        core.local.node_id,
        &core.local.client_address,
        core.local.incarnation,
    );
    let others = probed.iter().map(|probed_peer| {
        let found = &probed_peer.found;
        (found.node_id, &found.client_address, found.incarnation)
    });
    let members: BTreeMap<u64, Member> = others
        .chain([founder])
        .map(|(node_id, client_address, incarnation)| {
            let member = Member {
                cluster_id: cluster_id.clone(),
                peer_address: peers[&NodeId(node_id)].clone(),
                client_address: client_address.clone(),
                incarnation,
            };
            (node_id, member)
        })
        .collect();
    core.local.enter(cluster_id);
    core.admit();
    let formed = core.raft.initialize(members).await;
    formed.map_err(|error| StartError::Formation(error.to_string()))?;
    // The next peer that probes must find a member.
    core.consensus.await_membership().await;
    Ok(Round::Settled)
}
