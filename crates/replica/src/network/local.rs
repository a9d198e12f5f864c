//! This node's identity towards its peers, and what they have reported to it.

use crate::clock::StampClock;
use crate::cluster::disk_pressure::DiskPressure;
use crate::log::vote::Vote;
use crate::membership::StoredMembership;
use crate::network::caller::{Caller, host_of};
use crate::network::calls::PeerError;
use crate::network::protocol::{KnownMember, Sender};
use crate::raft::type_config::LogId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The hosts of members that a node remembers beside its membership.
const HOSTS_MAX: usize = 256;
/// The home group: the Raft group that has what belongs to no namespace. Today it is the only group of a cluster.
pub const HOME_GROUP_ID: u64 = 0;

/// What the sender of a message is to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A member.
    Member,
    /// Not a member as far as this node knows. It may have become one in an entry that this node has not received.
    Stranger,
    /// A removed member.
    Removed,
}

/// What this node reports about itself with every message.
pub(crate) struct Local {
    pub(crate) node_id: u64,
    pub(crate) incarnation: u64,
    pub(crate) client_address: String,
    pub(crate) version: String,
    /// The newest engine version that this binary knows.
    pub(crate) engine_version: u32,
    /// Its minimum election timeout, in milliseconds.
    pub(crate) election_ms: u64,
    /// What its host requires of a new cluster.
    pub(crate) formation_requirements: String,
    pub(crate) clock: Arc<StampClock>,
    /// Set once, when the cluster is formed or found.
    cluster_id: OnceLock<String>,
    /// The other nodes' client addresses, as last reported.
    client_addresses: Mutex<BTreeMap<u64, String>>,
    /// The hosts of members: of those that its configuration names, and of those that members have named.
    hosts: Mutex<BTreeSet<String>>,
    /// What the others have acknowledged to this node as leader: its vote, and the last entry.
    acknowledged: Mutex<BTreeMap<u64, (Vote, LogId)>>,
    /// The others' disk pressure, as reported since the last change of leaders.
    disk_pressures: Mutex<BTreeMap<u64, DiskPressure>>,
    /// The others that are drained, as reported since the last change of leaders.
    drained: Mutex<BTreeSet<u64>>,
}

/// This node's name.
pub(crate) struct LocalName {
    pub(crate) node_id: u64,
    pub(crate) incarnation: u64,
    pub(crate) client_address: String,
    pub(crate) version: String,
    pub(crate) engine_version: u32,
    pub(crate) election_ms: u64,
    pub(crate) formation_requirements: String,
    /// The hosts that may be those of members.
    pub(crate) hosts: BTreeSet<String>,
}

impl Local {
    pub(crate) fn new(name: LocalName, clock: Arc<StampClock>) -> Self {
        Self {
            node_id: name.node_id,
            incarnation: name.incarnation,
            client_address: name.client_address,
            version: name.version,
            engine_version: name.engine_version,
            election_ms: name.election_ms,
            formation_requirements: name.formation_requirements,
            clock,
            cluster_id: OnceLock::new(),
            client_addresses: Mutex::default(),
            hosts: Mutex::new(name.hosts),
            acknowledged: Mutex::default(),
            disk_pressures: Mutex::default(),
            drained: Mutex::default(),
        }
    }

    /// Joins this cluster.
    ///
    /// # Panics
    /// If the node belongs to another one: a directory belongs to one cluster permanently.
    pub(crate) fn enter(&self, cluster_id: String) {
        let own = self.cluster_id.get_or_init(|| cluster_id.clone());
        assert_eq!(
            *own, cluster_id,
            "a directory belongs to one cluster permanently"
        );
    }

    /// The cluster that this node belongs to.
    pub(crate) fn cluster_id(&self) -> Option<&str> {
        self.cluster_id.get().map(String::as_str)
    }

    /// The head of a message to `target_id`.
    pub(crate) fn sender(&self, target_id: u64) -> Sender {
        Sender {
            cluster_id: self.cluster_id.get().cloned().unwrap_or_default(),
            node_id: self.node_id,
            target_node_id: target_id,
            sent_at_ms: self.clock.wall_ms(),
            client_address: self.client_address.clone(),
            group_id: HOME_GROUP_ID,
        }
    }

    /// Checks the head of a message, and returns its sender. Records what it reports only if it is a member: a sender states
    /// its id itself.
    ///
    /// # Errors
    /// [`PeerError::Refused`] from a removed member, and as [`Self::check`].
    pub(crate) fn admit(
        &self,
        sender: Option<Sender>,
        standing: impl FnOnce(u64) -> Standing,
    ) -> Result<u64, PeerError> {
        let sender = sender.ok_or_else(|| PeerError::Refused("no sender".to_owned()))?;
        self.check(&sender)?;
        let node_id = sender.node_id;
        match standing(node_id) {
            Standing::Member => {
                self.clock.observe_peer(node_id, sender.sent_at_ms);
                self.client_addresses()
                    .insert(node_id, sender.client_address);
            }
            Standing::Stranger => {}
            Standing::Removed => {
                return Err(removed(node_id));
            }
        }
        Ok(node_id)
    }

    /// Checks the head of a message.
    ///
    /// # Errors
    /// [`PeerError::Refused`] if it is from another cluster or Raft group, or for another node.
    pub(crate) fn check(&self, sender: &Sender) -> Result<(), PeerError> {
        let own = self
            .cluster_id
            .get()
            .ok_or_else(|| PeerError::Unreachable("it does not know its cluster yet".to_owned()))?;
        if sender.cluster_id != *own {
            let text = format!(
                "expected cluster {own}, but it is of {:?}",
                sender.cluster_id
            );
            return Err(PeerError::Refused(text));
        }
        check_group(sender.group_id)?;
        if sender.target_node_id != self.node_id {
            let text = format!(
                "expected node {}, but this is {}",
                sender.target_node_id, self.node_id
            );
            return Err(PeerError::Refused(text));
        }
        Ok(())
    }

    /// Adds the hosts of members, as a member has named them.
    pub(crate) fn learn_hosts(&self, members: &[KnownMember]) {
        let mut hosts = self.hosts();
        for member in members {
            let host = host_of(&member.peer_address);
            if !host.is_empty() && !hosts.contains(host) && hosts.len() < HOSTS_MAX {
                hosts.insert(host.to_owned());
            }
        }
    }

    /// Whether the caller is a member, as far as this node knows them, or as `membership` does.
    pub(crate) fn is_member_host(&self, caller: &Caller, membership: &StoredMembership) -> bool {
        let members = membership.nodes();
        let hosts = members.map(|(_, member)| host_of(&member.peer_address));
        caller.is_any_of(hosts) || caller.is_any_of(self.hosts().iter().map(String::as_str))
    }

    /// A node's client address, as last reported.
    pub(crate) fn client_address_of(&self, node_id: u64) -> Option<String> {
        if node_id == self.node_id {
            return Some(self.client_address.clone());
        }
        self.client_addresses().get(&node_id).cloned()
    }

    /// Records that a node has acknowledged the log up to this entry to this node as the leader with this vote.
    pub(crate) fn note_acknowledged(&self, node_id: u64, vote: Vote, last: LogId) {
        let mut acknowledged = self.all_acknowledged();
        let known = acknowledged.entry(node_id).or_insert((vote, last));
        *known = match known {
            (known_vote, known_last) if *known_vote == vote => (vote, last.max(*known_last)),
            _ => (vote, last),
        };
    }

    /// The last entry that a node has acknowledged to this node as the leader with this vote.
    pub(crate) fn acknowledged(&self, node_id: u64, vote: &Vote) -> Option<LogId> {
        let acknowledged = self.all_acknowledged();
        let known = acknowledged.get(&node_id).filter(|known| known.0 == *vote);
        known.map(|(_, last)| *last)
    }

    /// Records a node's disk pressure.
    pub(crate) fn note_disk_pressure(&self, node_id: u64, disk_pressure: DiskPressure) {
        self.disk_pressures().insert(node_id, disk_pressure);
    }

    /// Records whether a node is drained.
    pub(crate) fn note_drained(&self, node_id: u64, is_drained: bool) {
        let mut drained = self.drained();
        match is_drained {
            true => drained.insert(node_id),
            false => drained.remove(&node_id),
        };
    }

    /// Whether another node is drained, as last reported.
    pub(crate) fn is_drained(&self, node_id: u64) -> bool {
        self.drained().contains(&node_id)
    }

    /// Clears what the others have reported about their disks and drains: only a leader receives it, and
    /// reports from an earlier term may be outdated.
    pub(crate) fn forget_reports(&self) {
        self.disk_pressures().clear();
        self.drained().clear();
    }

    /// A node's disk pressure, as last reported; `None` before its first report.
    pub(crate) fn disk_pressure_of(&self, node_id: u64) -> Option<DiskPressure> {
        self.disk_pressures().get(&node_id).copied()
    }

    /// Whether no other member reports disk pressure.
    pub(crate) fn has_no_other_member_short_of_disk(&self) -> bool {
        self.disk_pressures()
            .values()
            .all(|disk_pressure| *disk_pressure == DiskPressure::Normal)
    }

    fn disk_pressures(&self) -> MutexGuard<'_, BTreeMap<u64, DiskPressure>> {
        self.disk_pressures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn drained(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.drained.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_acknowledged(&self) -> MutexGuard<'_, BTreeMap<u64, (Vote, LogId)>> {
        self.acknowledged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn client_addresses(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        self.client_addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The refusal of a message from a removed member.
pub(crate) fn removed(node_id: u64) -> PeerError {
    PeerError::Refused(format!("node {node_id} was removed from the cluster"))
}

/// Checks the Raft group that a message is for.
///
/// # Errors
/// [`PeerError::Refused`] if this node is not in it.
pub(crate) fn check_group(group_id: u64) -> Result<(), PeerError> {
    if group_id == HOME_GROUP_ID {
        return Ok(());
    }
    let text = format!("expected group {HOME_GROUP_ID}, but it is {group_id}");
    Err(PeerError::Refused(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::local;

    #[test]
    fn only_what_a_member_reports_about_itself_is_recorded() {
        let local = local(1);
        let sender = |node_id: u64| Sender {
            node_id,
            target_node_id: 1,
            client_address: format!("client-{node_id}"),
            ..local.sender(1)
        };
        let removed = local.admit(Some(sender(2)), |_| Standing::Removed);
        assert!(matches!(removed, Err(PeerError::Refused(_))), "{removed:?}");
        let stranger = local.admit(Some(sender(3)), |_| Standing::Stranger);
        assert_eq!(stranger, Ok(3));
        let member = local.admit(Some(sender(4)), |_| Standing::Member);
        assert_eq!(member, Ok(4));
        let recorded = [2, 3, 4].map(|node_id| local.client_address_of(node_id));
        assert_eq!(recorded, [None, None, Some("client-4".to_owned())]);
    }
}
