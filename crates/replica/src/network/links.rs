//! Who this node is to its peers, and its connections to them.

use crate::clock::StampClock;
use crate::cluster::room::Room;
use crate::execution::Chores;
use crate::network::calls::{PeerCalls, PeerError};
use crate::network::forward::ForwardLink;
use crate::network::protocol::Sender;
use crate::network::transport::Transport;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What this node tells of itself with every message.
pub(crate) struct Local {
    pub(crate) node_id: u64,
    pub(crate) incarnation: u64,
    pub(crate) client_address: String,
    pub(crate) version: String,
    /// The newest engine version that this binary knows.
    pub(crate) engine_version: u32,
    pub(crate) clock: Arc<StampClock>,
    /// Set once, when the cluster is founded or found.
    cluster_id: OnceLock<String>,
    /// Where clients reach the others, as they said last.
    client_addresses: Mutex<BTreeMap<u64, String>>,
    /// What the others still write, as they have said since the leader changed last.
    rooms: Mutex<BTreeMap<u64, Room>>,
}

/// Who this node is.
pub(crate) struct LocalName {
    pub(crate) node_id: u64,
    pub(crate) incarnation: u64,
    pub(crate) client_address: String,
    pub(crate) version: String,
    pub(crate) engine_version: u32,
}

impl Local {
    pub(crate) fn new(name: LocalName, clock: Arc<StampClock>) -> Self {
        Self {
            node_id: name.node_id,
            incarnation: name.incarnation,
            client_address: name.client_address,
            version: name.version,
            engine_version: name.engine_version,
            clock,
            cluster_id: OnceLock::new(),
            client_addresses: Mutex::default(),
            rooms: Mutex::default(),
        }
    }

    /// Takes part in this cluster from now on.
    ///
    /// # Panics
    /// If it takes part in another: a directory belongs to one cluster for good.
    pub(crate) fn enter(&self, cluster_id: String) {
        let own = self.cluster_id.get_or_init(|| cluster_id.clone());
        assert_eq!(
            *own, cluster_id,
            "a directory belongs to one cluster for good"
        );
    }

    /// The cluster that this node takes part in.
    pub(crate) fn cluster_id(&self) -> Option<&str> {
        self.cluster_id.get().map(String::as_str)
    }

    /// The head of a message to `target_id`.
    pub(crate) fn sender(&self, target_id: u64) -> Sender {
        Sender {
            cluster_id: self.cluster_id.get().cloned().unwrap_or_default(),
            node_id: self.node_id,
            target_id,
            wall_ms: self.clock.wall_ms(),
            client_address: self.client_address.clone(),
        }
    }

    /// Checks the head of a message and takes note of what it tells.
    ///
    /// # Errors
    /// [`PeerError::Refused`] when it is from another cluster or for another node.
    pub(crate) fn admit(&self, sender: Option<Sender>) -> Result<u64, PeerError> {
        let sender = sender.ok_or_else(|| PeerError::Refused("no sender".to_owned()))?;
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
        if sender.target_id != self.node_id {
            let text = format!(
                "expected node {}, but this is {}",
                sender.target_id, self.node_id
            );
            return Err(PeerError::Refused(text));
        }
        self.clock.hear(sender.node_id, sender.wall_ms);
        self.client_addresses()
            .insert(sender.node_id, sender.client_address);
        Ok(sender.node_id)
    }

    /// Where clients reach a node, as it said last.
    pub(crate) fn client_address_of(&self, node_id: u64) -> Option<String> {
        if node_id == self.node_id {
            return Some(self.client_address.clone());
        }
        self.client_addresses().get(&node_id).cloned()
    }

    /// Takes note of what a node still writes.
    pub(crate) fn hear_room(&self, node_id: u64, room: Room) {
        self.rooms().insert(node_id, room);
    }

    /// Forgets what the others still write: only a leader is told, and what it was told before it was one
    /// the last time may be wrong by now.
    pub(crate) fn forget_rooms(&self) {
        self.rooms().clear();
    }

    /// What a node still writes, as it said last; `None` while it has said nothing.
    pub(crate) fn room_of(&self, node_id: u64) -> Option<Room> {
        self.rooms().get(&node_id).copied()
    }

    /// Whether all others write everything, as far as is known.
    pub(crate) fn have_all_room(&self) -> bool {
        self.rooms().values().all(|room| *room == Room::Free)
    }

    fn rooms(&self) -> MutexGuard<'_, BTreeMap<u64, Room>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client_addresses(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        self.client_addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connections to peers beside those that openraft holds.
pub(crate) struct Links {
    /// Who packs and unpacks snapshots, on threads or as tasks.
    pub(crate) chores: Chores,
    transport: Arc<dyn Transport>,
    calls: Mutex<BTreeMap<String, Arc<dyn PeerCalls>>>,
    forwards: Mutex<BTreeMap<String, Arc<ForwardLink>>>,
}

impl Links {
    pub(crate) fn new(transport: Arc<dyn Transport>, chores: Chores) -> Self {
        Self {
            chores,
            transport,
            calls: Mutex::default(),
            forwards: Mutex::default(),
        }
    }

    /// A connection of its own.
    pub(crate) fn connect(&self, address: &str) -> Arc<dyn PeerCalls> {
        self.transport.connect(address)
    }

    /// The connection for short calls.
    pub(crate) fn calls(&self, address: &str) -> Arc<dyn PeerCalls> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let connect = || self.transport.connect(address);
        Arc::clone(calls.entry(address.to_owned()).or_insert_with(connect))
    }

    /// The long-lived stream for what only the leader can answer.
    pub(crate) fn forward(&self, address: &str) -> Arc<ForwardLink> {
        let mut forwards = self.forwards.lock().unwrap_or_else(PoisonError::into_inner);
        let connect = || Arc::new(ForwardLink::new(self.transport.connect(address)));
        Arc::clone(forwards.entry(address.to_owned()).or_insert_with(connect))
    }
}
