//! The current leader, as this node knows it.

use crate::membership::{StoredMembership, term_of};
use crate::network::local::Local;
use crate::raft::type_config::{ConsensusHandle, LogId, TypeConfig};
use crate::state::rows::AppliedPosition;
use flotilla_engine::NodeId;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::metrics::RaftServerMetrics;
use tokio::sync::watch;

/// A member that is not further behind than this has caught up: the rest takes no longer than any
/// write.
pub(crate) const LAG_MAX: u64 = 64;

/// The current leader, as this node knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leadership {
    /// The leader of `term`, if it is known.
    pub leader: Option<Leader>,
    /// The newest term known.
    pub term: u64,
    /// Whether this node leads.
    pub is_self: bool,
    /// Whether this node leads and has applied an entry of its term: its state is then complete.
    pub is_ready: bool,
}

/// A voter that follows this node, the leader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follower {
    pub(crate) node_id: u64,
    /// The last entry that it is known to have.
    pub(crate) matched: Option<LogId>,
    /// How many entries it is behind.
    pub(crate) lag: u64,
}

impl Follower {
    /// Whether the entries that it lacks take no longer to arrive than any write.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.lag <= LAG_MAX
    }
}

/// How far a member is behind a log that ends at `last`, if it is known to have `matched`.
pub(crate) fn lag(matched: Option<LogId>, last: u64) -> u64 {
    match matched {
        Some(matched) => last.saturating_sub(matched.index()),
        // It is not known to have anything, however short the log is.
        None => last.max(LAG_MAX + 1),
    }
}

/// The leader of a term, with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The node that leads.
    pub node_id: NodeId,
    /// Its address for clients.
    pub client_address: String,
    /// Its address for peers.
    pub peer_address: String,
}

/// Keeps `leadership` up to date until openraft ends.
pub(crate) async fn watch_leadership(
    raft: ConsensusHandle,
    local: std::sync::Arc<Local>,
    mut applied_position: watch::Receiver<AppliedPosition>,
    leadership: watch::Sender<Leadership>,
) {
    let mut metrics = raft.server_metrics();
    loop {
        let seen = leadership_of(
            &metrics.borrow_watched(),
            &local,
            *applied_position.borrow_and_update(),
        );
        let awaits_own_entry = seen.is_self && !seen.is_ready;
        let is_other = {
            let known = leadership.borrow();
            (known.term, known.is_self) != (seen.term, seen.is_self)
        };
        if is_other {
            local.forget_reports();
        }
        leadership.send_if_modified(|known| {
            let is_new = *known != seen;
            *known = seen;
            is_new
        });
        let changed = tokio::select! {
            changed = metrics.changed() => changed.is_ok(),
            changed = applied_position.changed(), if awaits_own_entry => changed.is_ok(),
        };
        if !changed {
            leadership.send_modify(|known| {
                *known = Leadership {
                    term: known.term,
                    ..Leadership::default()
                };
            });
            return;
        }
    }
}

fn leadership_of(
    metrics: &RaftServerMetrics<TypeConfig>,
    local: &Local,
    applied_position: AppliedPosition,
) -> Leadership {
    let term = metrics.vote.leader_id.term;
    let is_self = metrics.current_leader == Some(local.node_id);
    let leader = metrics
        .current_leader
        .and_then(|node_id| leader_of(&metrics.membership_config, local, node_id));
    let is_current = applied_position
        .log_id
        .is_some_and(|log_id| term_of(&log_id) == term);
    Leadership {
        leader,
        term,
        is_self,
        is_ready: is_self && is_current,
    }
}

fn leader_of(membership: &StoredMembership, local: &Local, node_id: u64) -> Option<Leader> {
    let member = membership.get_node(&node_id)?;
    let heard = local
        .client_address_of(node_id)
        .filter(|address| !address.is_empty());
    Some(Leader {
        node_id: NodeId(node_id),
        client_address: heard.unwrap_or_else(|| member.client_address.clone()),
        peer_address: member.peer_address.clone(),
    })
}
