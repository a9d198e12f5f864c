//! Founding a cluster, finding the one that was founded, and refusing what must not take part.
//!
//! A node with an empty data directory may be new, or a member that lost its directory and with it
//! its votes. So every directory draws an incarnation when it is made, the founding entry lists
//! those of all members, and an empty node takes part only if the cluster knows its incarnation, or
//! if no peer knows a cluster at all. The lowest id founds.

use crate::core::Core;
use crate::membership::{Member, StoredMembership};
use crate::network::calls::PeerCalls;
use crate::network::links::{Links, Local};
use crate::network::protocol::{ProbeRequest, ProbeResponse};
use crate::start::StartError;
use flotilla_engine::NodeId;
use futures::future::join_all;
use openraft::async_runtime::watch::WatchReceiver;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A peer that does not answer within this time is not up.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);
const ROUND_PAUSE: Duration = Duration::from_millis(100);
/// How often a node that waits says for what.
const TELL_INTERVAL: Duration = Duration::from_secs(10);

/// How this node came to its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formation {
    /// It is one of the first members.
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

/// What a round of probes led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// This node takes part.
    Settled,
    /// It does not yet; says for what it waits.
    Waiting(String),
}

/// Probes until this node takes part, and says now and then for what it waits.
pub(crate) async fn form(core: &Core, formation: &Formation) -> Result<(), StartError> {
    let mut told: Option<Instant> = None;
    while let Round::Waiting(awaited) = round(core, formation).await? {
        if told.is_none_or(|told| told.elapsed() >= TELL_INTERVAL) {
            told = Some(Instant::now());
            tracing::info!(node_id = core.local.node_id, "the node waits: {awaited}");
        }
        tokio::time::sleep(ROUND_PAUSE).await;
    }
    if matches!(formation, Formation::Join { .. }) && !core.is_member() {
        let node_id = core.local.node_id;
        tracing::info!(
            node_id,
            "the node waits to be taken in, by `flo cluster add-learner {node_id} HOST:PORT` with the \
             address at which the members reach its peer port"
        );
    }
    Ok(())
}

/// Asks all peers who they are, and takes part if that settles it.
pub(crate) async fn round(core: &Core, formation: &Formation) -> Result<Round, StartError> {
    let answers = probe_all(core, formation).await;
    if let Some(own) = core.local.cluster_id() {
        check_cluster(own, &answers)?;
        // It may have been away when it was removed.
        if answers.iter().any(|answer| is_retired(core, &answer.found)) {
            return Err(StartError::Removed(NodeId(core.local.node_id)));
        }
        core.admit();
        return Ok(Round::Settled);
    }
    // Only now: the first members of a cluster that exists may have been replaced since.
    if let Formation::Found { .. } = formation {
        check_ids(&answers)?;
    }
    let known = answers
        .iter()
        .find(|answer| !answer.found.cluster_id.is_empty());
    match (known, formation) {
        (Some(known), _) => {
            // A member that lags may not know it yet.
            let is_retired = answers.iter().any(|answer| is_retired(core, &answer.found));
            enter(core, formation, &known.found, is_retired)
        }
        // A node that has voted founds nothing: it waits for the founder that it voted for.
        (None, Formation::Found { peers }) if core.log.is_pristine() => {
            found(core, formation, peers, &answers).await
        }
        (None, _) => Ok(Round::Waiting(awaited(core, formation, &answers))),
    }
}

/// For what a node waits that knows no cluster.
fn awaited(core: &Core, formation: &Formation, answers: &[Answered]) -> String {
    let is_silent = |address: &String| answers.iter().all(|answer| answer.address != *address);
    match formation {
        Formation::Join { seeds } => {
            let silent: Vec<&str> = seeds
                .iter()
                .filter(|seed| is_silent(seed))
                .map(String::as_str)
                .collect();
            if silent.is_empty() {
                return "the node that it is to join by has no cluster itself yet".to_owned();
            }
            format!(
                "no member answers at {}, by which it is to join",
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
            if silent.is_empty() {
                return "all first members answer, and one of them founds the cluster".to_owned();
            }
            format!(
                "a cluster begins with all its first members, but these do not answer: {}",
                silent.join(", ")
            )
        }
    }
}

struct Answered {
    /// Whom the configuration expects there.
    expected: Option<NodeId>,
    address: String,
    found: ProbeResponse,
}

async fn probe_all(core: &Core, formation: &Formation) -> Vec<Answered> {
    let targets: Vec<(Option<NodeId>, &String)> = match formation {
        Formation::Found { peers } => peers
            .iter()
            .filter(|(node_id, _)| node_id.0 != core.local.node_id)
            .map(|(node_id, address)| (Some(*node_id), address))
            .collect(),
        Formation::Join { seeds } => seeds.iter().map(|address| (None, address)).collect(),
    };
    let asked = targets.into_iter().map(|(expected, address)| async move {
        Some(Answered {
            expected,
            address: address.clone(),
            found: probe(core, address).await?,
        })
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Asks who is at a peer address; `None` when nobody says so soon.
pub(crate) async fn probe(core: &Core, address: &str) -> Option<ProbeResponse> {
    ask(&core.local, core.links.calls(address).as_ref()).await
}

async fn ask(local: &Local, peer: &dyn PeerCalls) -> Option<ProbeResponse> {
    let request = ProbeRequest {
        node_id: local.node_id,
    };
    let answer = tokio::time::timeout(PROBE_TIMEOUT, peer.probe(request)).await;
    answer.ok()?.ok()
}

/// Refuses to start beside another process of the same node: peers of this one are not served yet, so whoever
/// answers where its members reach it is one.
pub(crate) async fn check_alone(
    local: &Local,
    links: &Links,
    members: &StoredMembership,
) -> Result<(), StartError> {
    let Some(member) = members.get_node(&local.node_id) else {
        return Ok(());
    };
    let found = ask(local, links.connect(&member.peer_address).as_ref()).await;
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

fn check_ids(answers: &[Answered]) -> Result<(), StartError> {
    for Answered {
        expected,
        address,
        found,
    } in answers
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

fn check_cluster(own: &str, answers: &[Answered]) -> Result<(), StartError> {
    for Answered { address, found, .. } in answers {
        if !found.cluster_id.is_empty() && found.cluster_id != own {
            return Err(StartError::OtherCluster {
                own: own.to_owned(),
                other: found.cluster_id.clone(),
                address: address.clone(),
            });
        }
    }
    Ok(())
}

/// Whether a peer tells that this node was a member of its cluster and was removed.
pub(crate) fn is_retired(core: &Core, peer: &ProbeResponse) -> bool {
    let is_own = core
        .local
        .cluster_id()
        .is_none_or(|own| own == peer.cluster_id);
    is_own && peer.retired_ids.contains(&core.local.node_id)
}

/// Takes part in a cluster that exists, unless this directory is not the one that it knows.
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
            return Err(StartError::NotAMember {
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

/// Founds the cluster if every peer is up and empty and this node has the lowest id.
async fn found(
    core: &Core,
    formation: &Formation,
    peers: &BTreeMap<NodeId, String>,
    answers: &[Answered],
) -> Result<Round, StartError> {
    let is_first = peers
        .first_key_value()
        .is_some_and(|(first, _)| first.0 == core.local.node_id);
    let all_empty = answers.len() + 1 == peers.len() && answers.iter().all(|a| a.found.is_empty);
    if !is_first || !all_empty {
        return Ok(Round::Waiting(awaited(core, formation, answers)));
    }
    let cluster_id = format!("{:032x}", rand::random::<u128>());
    let founder = (
        core.local.node_id,
        &core.local.client_address,
        core.local.incarnation,
    );
    let others = answers.iter().map(|answer| {
        let found = &answer.found;
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
    let founded = core.raft.initialize(members).await;
    founded.map_err(|error| StartError::Founding(error.to_string()))?;
    // Whoever asks next must find a member.
    let mut metrics = core.raft.server_metrics();
    while !core.is_member() && metrics.changed().await.is_ok() {}
    Ok(Round::Settled)
}
