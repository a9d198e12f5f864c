//! Forms a cluster or finds the one that was formed, and refuses nodes that must not take part.
//!
//! A node with an empty data directory may be new, or a member that lost its directory and with it
//! its votes. So every directory gets a random incarnation when it is created, the entry that forms
//! a cluster lists those of all members, and an empty node takes part only if the cluster knows its
//! incarnation, or if no peer knows a cluster at all. The node with the lowest id forms it.
//!
//! Several first members form a cluster only at an operator's request. They may be empty because they are new, or because
//! all have lost their data; only the operator knows. A request at any of them reaches the others with the probes.

use crate::cluster::consensus_view::ConsensusView;
use crate::cluster::formation_progress::FormationProgress;
use crate::cluster::probe::{ProbedPeer, Probes, check_cluster};
use crate::lifecycle::Lifecycle;
use crate::log::store::LogStore;
use crate::membership::Member;
use crate::network::local::Local;
use crate::network::protocol::ProbeResponse;
use crate::raft::type_config::ConsensusHandle;
use crate::start_error::StartError;
use flotilla_engine::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How much is shown of what another member requires, in characters.
const SHOWN_REQUIREMENTS_CHARS_MAX: usize = 200;
const ROUND_PAUSE: Duration = Duration::from_millis(100);

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

impl Formation {
    /// The ids of the first members; empty on a node that joins.
    pub(crate) fn first_members(&self) -> BTreeSet<u64> {
        match self {
            Self::Found { peers } => peers.keys().map(|node_id| node_id.0).collect(),
            Self::Join { .. } => BTreeSet::new(),
        }
    }
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
    #[error("expected a first member, but this node is configured to join an existing cluster")]
    NotFirstMember,
    /// The deadline has passed. The request remains in force until the node stops.
    #[error("the cluster has not been formed yet: {0}")]
    Waiting(String),
    /// The node has stopped.
    #[error("the node has stopped")]
    Shutdown,
}

/// The result of a round of probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// This node takes part.
    Settled,
    /// It does not yet; the text says what it waits for.
    Waiting(String),
}

/// The formation of the cluster, or the way into an existing one.
pub(crate) struct FormationProcess {
    pub(crate) formation: Formation,
    pub(crate) progress: Arc<FormationProgress>,
    pub(crate) probes: Probes,
    pub(crate) local: Arc<Local>,
    pub(crate) log: LogStore,
    pub(crate) raft: ConsensusHandle,
    pub(crate) consensus: ConsensusView,
    pub(crate) lifecycle: Lifecycle,
}

impl FormationProcess {
    /// Lets the first members form a cluster as soon as all of them respond and are empty, and waits until this node
    /// belongs to it.
    pub(crate) async fn form(&self, deadline: Instant) -> Result<FormedCluster, FormError> {
        let node_id = self.local.node_id;
        let is_new = !self.consensus.is_member();
        if is_new {
            if !self.progress.is_first_member(node_id) {
                return Err(FormError::NotFirstMember);
            }
            self.progress.request_from(node_id);
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

    /// Probes until this node takes part.
    pub(crate) async fn run(&self) -> Result<(), StartError> {
        while let Round::Waiting(awaited) = self.round().await? {
            self.progress.set_awaited(Some(awaited));
            tokio::time::sleep(ROUND_PAUSE).await;
        }
        self.progress.set_awaited(Some(match self.formation {
            Formation::Found { .. } => {
                "the cluster is formed; waiting for the log of its leader".to_owned()
            }
            Formation::Join { .. } => format!(
                "no member has added it; run `flo cluster add-learner {} HOST:PORT` with the address at which the members \
                 reach this node's peer port",
                self.local.node_id
            ),
        }));
        Ok(())
    }

    /// What this node waits for before it belongs to a cluster; `None` if it does not wait.
    pub(crate) fn awaited(&self) -> Option<String> {
        // A removed member waits for nothing.
        if self.consensus.is_member() || self.lifecycle.has_failed() {
            return None;
        }
        match self.consensus.has_known_leader() {
            true => {
                Some("a leader has added this node; waiting for its log or snapshot".to_owned())
            }
            false => self.progress.awaited(),
        }
    }

    /// Probes all peers, and takes part if the result allows it.
    pub(crate) async fn round(&self) -> Result<Round, StartError> {
        let probed = self.probe_all().await;
        if let Some(own) = self.local.cluster_id() {
            check_cluster(own, &probed)?;
            // It may have been down when it was removed.
            if probed
                .iter()
                .any(|probed_peer| self.probes.is_retired(&probed_peer.found))
            {
                return Err(StartError::Removed(NodeId(self.local.node_id)));
            }
            self.progress.admit();
            return Ok(Round::Settled);
        }
        // Only now: the first members of an existing cluster may have been replaced since.
        if let Formation::Found { .. } = &self.formation {
            check_ids(&probed)?;
        }
        let known = probed
            .iter()
            .find(|probed_peer| !probed_peer.found.cluster_id.is_empty());
        match (known, &self.formation) {
            (Some(known), _) => {
                // A member that lags may not know it yet.
                let is_retired = probed
                    .iter()
                    .any(|probed_peer| self.probes.is_retired(&probed_peer.found));
                self.enter(&known.found, is_retired)
            }
            // A node that has voted does not found: it waits for the founder that it voted for.
            (None, Formation::Found { peers }) if self.log.is_pristine() => {
                self.found(peers, &probed).await
            }
            (None, _) => Ok(Round::Waiting(self.awaited_after(&probed))),
        }
    }

    /// What a node without a cluster waits for.
    fn awaited_after(&self, probed: &[ProbedPeer]) -> String {
        let is_silent = |address: &String| {
            probed
                .iter()
                .all(|probed_peer| probed_peer.address != *address)
        };
        match &self.formation {
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
                    .filter(|(node_id, _)| node_id.0 != self.local.node_id);
                let silent = others.filter(|(_, address)| is_silent(address));
                let silent: Vec<String> = silent
                    .map(|(node_id, address)| format!("node {} at {address}", node_id.0))
                    .collect();
                if let Some(difference) = self.requirements_mismatch(probed) {
                    return difference;
                }
                match (silent.is_empty(), self.progress.is_requested()) {
                    (true, true) => {
                        "all first members respond; waiting for one of them to form the cluster"
                            .to_owned()
                    }
                    (true, false) => "all first members respond, but none belongs to a cluster; \
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

    /// Says which first member requires something else of a new cluster than this node; `None` if all agree.
    fn requirements_mismatch(&self, probed: &[ProbedPeer]) -> Option<String> {
        let own = &self.local.formation_requirements;
        let other = probed
            .iter()
            .find(|probed_peer| probed_peer.found.formation_requirements != *own)?;
        let requirements: String = other
            .found
            .formation_requirements
            .chars()
            .take(SHOWN_REQUIREMENTS_CHARS_MAX)
            .collect();
        Some(format!(
            "the first members are configured differently: this node has `{own}`, but node {} has `{requirements}`; correct one of \
             them and restart it",
            other.found.node_id
        ))
    }

    async fn probe_all(&self) -> Vec<ProbedPeer> {
        let targets: Vec<(Option<NodeId>, &String)> = match &self.formation {
            Formation::Found { peers } => peers
                .iter()
                .filter(|(node_id, _)| node_id.0 != self.local.node_id)
                .map(|(node_id, address)| (Some(*node_id), address))
                .collect(),
            Formation::Join { seeds } => seeds.iter().map(|address| (None, address)).collect(),
        };
        self.probes.each(targets).await
    }

    /// Takes part in an existing cluster, unless this directory is not the one that the cluster knows.
    fn enter(&self, known: &ProbeResponse, is_retired: bool) -> Result<Round, StartError> {
        let node_id = NodeId(self.local.node_id);
        let cluster_id = known.cluster_id.clone();
        let member = known
            .members
            .iter()
            .find(|member| member.node_id == node_id.0);
        match (member, &self.formation) {
            (Some(member), _) if member.incarnation == self.local.incarnation => {}
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
        self.local.enter(cluster_id);
        self.progress.admit();
        Ok(Round::Settled)
    }

    /// Founds the cluster if that is requested, every peer is up and empty and this node has the lowest id.
    async fn found(
        &self,
        peers: &BTreeMap<NodeId, String>,
        probed: &[ProbedPeer],
    ) -> Result<Round, StartError> {
        let is_first = peers
            .first_key_value()
            .is_some_and(|(first, _)| first.0 == self.local.node_id);
        let all_empty = probed.len() + 1 == peers.len() && probed.iter().all(|a| a.found.empty);
        let is_agreed = self.requirements_mismatch(probed).is_none();
        if !self.progress.is_requested() || !is_first || !all_empty || !is_agreed {
            return Ok(Round::Waiting(self.awaited_after(probed)));
        }
        let cluster_id = format!("{:032x}", rand::random::<u128>());
        let founder = (
            self.local.node_id,
            &self.local.client_address,
            self.local.incarnation,
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
        self.local.enter(cluster_id);
        self.progress.admit();
        let formed = self.raft.initialize(members).await;
        formed.map_err(|error| StartError::Formation(error.to_string()))?;
        // The next peer that probes must find a member.
        self.consensus.await_membership().await;
        Ok(Round::Settled)
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
