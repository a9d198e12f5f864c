//! This node's connections to its peers.

use crate::execution::BlockingPool;
use crate::network::calls::PeerCalls;
use crate::network::forward::{ForwardKind, ForwardLink, ForwardPeer};
use crate::network::local::Local;
use crate::network::snapshots::SNAPSHOTS_READ_MAX;
use crate::network::transport::Transport;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Where a stream of forwarded requests ends: the node's address, its id, and what the stream carries.
type ForwardTarget = (String, u64, ForwardKind);

/// The connections to peers beside those that openraft holds.
pub(crate) struct Links {
    /// Packs and unpacks snapshots, on threads or as tasks.
    pub(crate) blocking_pool: BlockingPool,
    /// Permits to read snapshots of this node's state.
    pub(crate) snapshot_readers: Arc<Semaphore>,
    local: Arc<Local>,
    transport: Arc<dyn Transport>,
    calls: Mutex<BTreeMap<String, Arc<dyn PeerCalls>>>,
    forwards: Mutex<BTreeMap<ForwardTarget, Arc<ForwardLink>>>,
}

impl Links {
    pub(crate) fn new(
        local: Arc<Local>,
        transport: Arc<dyn Transport>,
        blocking_pool: BlockingPool,
    ) -> Self {
        Self {
            local,
            blocking_pool,
            snapshot_readers: Arc::new(Semaphore::new(SNAPSHOTS_READ_MAX)),
            transport,
            calls: Mutex::default(),
            forwards: Mutex::default(),
        }
    }

    /// A separate connection.
    pub(crate) fn connect(&self, address: &str) -> Arc<dyn PeerCalls> {
        self.transport.connect(address)
    }

    /// The connection for short calls.
    pub(crate) fn calls(&self, address: &str) -> Arc<dyn PeerCalls> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let connect = || self.transport.connect(address);
        Arc::clone(calls.entry(address.to_owned()).or_insert_with(connect))
    }

    /// The long-lived stream to a node, for requests of a kind that only the leader can serve.
    pub(crate) fn forward(
        &self,
        node_id: u64,
        address: &str,
        kind: ForwardKind,
    ) -> Arc<ForwardLink> {
        let mut forwards = self.forwards.lock().unwrap_or_else(PoisonError::into_inner);
        let connect = || {
            let peer = ForwardPeer {
                local: Arc::clone(&self.local),
                node_id,
                calls: self.transport.connect(address),
            };
            Arc::new(ForwardLink::new(peer))
        };
        let target = (address.to_owned(), node_id, kind);
        Arc::clone(forwards.entry(target).or_insert_with(connect))
    }

    /// The requests that wait for the transport to leaders. In bytes.
    pub(crate) fn forward_bytes(&self) -> usize {
        let forwards = self.forwards.lock().unwrap_or_else(PoisonError::into_inner);
        forwards.values().map(|link| link.queued_bytes()).sum()
    }

    /// The snapshots that are read, to be sent to members or as backups.
    pub(crate) fn outgoing_snapshot_count(&self) -> usize {
        SNAPSHOTS_READ_MAX.saturating_sub(self.snapshot_readers.available_permits())
    }

    /// Closes the connections to all addresses but these.
    pub(crate) fn retain(&self, addresses: &BTreeSet<&str>) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|address, _| addresses.contains(address.as_str()));
        let mut forwards = self.forwards.lock().unwrap_or_else(PoisonError::into_inner);
        forwards.retain(|(address, _, _), _| addresses.contains(address.as_str()));
    }
}
