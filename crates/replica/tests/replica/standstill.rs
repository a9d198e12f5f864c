//! A replica that applies nothing although it reaches its leader.

use crate::cluster::{Cluster, LONG, register, submit};
use flotilla_engine::store::{Reader, StoreError, Writes};
use flotilla_replica::{
    DirectoryLock, Environment, Incoming, LogDevice, RocksStorage, SharedReader, Standstill,
    StateStore, Storage, StorageError, Tuning,
};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use tokio::time::timeout;

/// Lets writes to a node's state pass, or holds them.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set_closed(&self, is_closed: bool) {
        *self.is_closed.lock().expect("no panic under the lock") = is_closed;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let is_closed = self.is_closed.lock().expect("no panic under the lock");
        let passed = self.changed.wait_while(is_closed, |is_closed| *is_closed);
        drop(passed.expect("no panic under the lock"));
    }
}

/// Storage whose state is written through a gate.
struct GatedStorage(Arc<Gate>);

impl Storage for GatedStorage {
    fn lock(&self, data_directory: &Path) -> io::Result<DirectoryLock> {
        RocksStorage.lock(data_directory)
    }

    fn open_log(&self, data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError> {
        RocksStorage.open_log(data_directory)
    }

    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        let state = RocksStorage.open_state(data_directory)?;
        Ok(Arc::new(GatedState(state, Arc::clone(&self.0))))
    }
}

struct GatedState(Arc<dyn StateStore>, Arc<Gate>);

impl StateStore for GatedState {
    fn reader(&self) -> Arc<dyn SharedReader> {
        self.0.reader()
    }

    fn frozen(&self, read: &mut dyn FnMut(&dyn Reader)) {
        self.0.frozen(read);
    }

    fn write(&self, writes: &Writes) -> Result<(), StoreError> {
        self.1.pass();
        self.0.write(writes)
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.0.flush()
    }

    fn limit_buffers(&self, percent: u32) -> Result<(), StoreError> {
        self.0.limit_buffers(percent)
    }

    fn capture(&self) -> Result<Arc<dyn SharedReader>, StoreError> {
        self.0.capture()
    }

    fn captured(&self) -> Option<Arc<dyn SharedReader>> {
        self.0.captured()
    }

    fn receive(&self) -> Result<Box<dyn Incoming>, StoreError> {
        self.0.receive()
    }
}

/// Opens the gate, also if the test fails: a replica waits for its applier.
struct ClosedGate<'g>(&'g Gate);

impl<'g> ClosedGate<'g> {
    fn new(gate: &'g Gate) -> Self {
        gate.set_closed(true);
        Self(gate)
    }
}

impl Drop for ClosedGate<'_> {
    fn drop(&mut self) {
        self.0.set_closed(false);
    }
}

#[tokio::test]
async fn a_node_that_applies_nothing_says_so_until_it_applies_again() {
    let gates: BTreeMap<u64, Arc<Gate>> = (1..=3).map(|id| (id, Arc::default())).collect();
    let mut cluster = Cluster::new(3, Tuning::default());
    for (id, gate) in &gates {
        let environment = Environment {
            storage: Arc::new(GatedStorage(Arc::clone(gate))),
            ..Environment::default()
        };
        cluster.start_with(*id, environment).await;
    }
    cluster.form(1).await;
    let leader = cluster.leader().await;
    let follower = cluster.follower().await;
    let mut standstill = cluster.node(follower).standstill();
    let mut becomes = async |expected| {
        let found = timeout(LONG, standstill.wait_for(|found| *found == expected)).await;
        drop(found.expect("it notices").expect("the replica runs"));
    };
    becomes(None).await;

    let closed = ClosedGate::new(&gates[&follower]);
    let submitted = submit(cluster.node(leader), register("a")).await;
    submitted.expect("a majority applies it").expect("accepted");
    becomes(Some(Standstill::NothingApplied)).await;
    assert!(cluster.node(follower).has_leader_contact());

    drop(closed);
    becomes(None).await;
}
