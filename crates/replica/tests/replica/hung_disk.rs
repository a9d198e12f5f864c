//! Disks that hang: writes to the log do not return.

use crate::cluster::{Cluster, LONG, register, submit, submit_surely};
use flotilla_replica::{
    DeviceError, DirectoryLock, Durability, Environment, Fact, FatalError, LogDevice, Operation,
    RecordVisitor, RocksStorage, StateStore, Storage, StorageError, Tuning,
};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tokio::time::timeout;

/// Holds up writes while it is shut.
#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn shut(&self) {
        *self.is_shut.lock().expect("no panic") = true;
    }

    fn open(&self) {
        *self.is_shut.lock().expect("no panic") = false;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let is_shut = self.is_shut.lock().expect("no panic");
        let passed = self.opened.wait_while(is_shut, |is_shut| *is_shut);
        drop(passed.expect("no panic"));
    }
}

struct GatedDisk(Arc<Gate>);

impl Storage for GatedDisk {
    fn lock(&self, data_directory: &Path) -> io::Result<DirectoryLock> {
        RocksStorage.lock(data_directory)
    }

    fn open_log(&self, data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError> {
        let log = RocksStorage.open_log(data_directory)?;
        let gate = Arc::clone(&self.0);
        Ok(Arc::new(GatedLog { log, gate }))
    }

    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        RocksStorage.open_state(data_directory)
    }
}

struct GatedLog {
    log: Arc<dyn LogDevice>,
    gate: Arc<Gate>,
}

impl LogDevice for GatedLog {
    fn facts(&self) -> Result<BTreeMap<Fact, Vec<u8>>, DeviceError> {
        self.log.facts()
    }

    fn read(&self, from: u64, to: u64, visitor: RecordVisitor<'_>) -> Result<(), DeviceError> {
        self.log.read(from, to, visitor)
    }

    fn write(&self, operations: &[Operation], durability: Durability) -> Result<(), DeviceError> {
        self.gate.pass();
        self.log.write(operations, durability)
    }
}

/// Nodes with disks that can hang.
struct Disks {
    gates: BTreeMap<u64, Arc<Gate>>,
    cluster: Cluster,
}

impl Disks {
    async fn started(nodes_count: u64, tuning: Tuning) -> Self {
        let mut cluster = Cluster::new(nodes_count, tuning);
        let mut gates = BTreeMap::new();
        for id in 1..=nodes_count {
            let gate = Arc::<Gate>::default();
            let environment = Environment {
                storage: Arc::new(GatedDisk(Arc::clone(&gate))),
                ..Environment::default()
            };
            gates.insert(id, gate);
            cluster.start_with(id, environment).await;
        }
        cluster.form(1).await;
        cluster.leader().await;
        Self { gates, cluster }
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        // Otherwise, the nodes would wait for their threads.
        self.gates.values().for_each(|gate| gate.open());
    }
}

#[tokio::test]
async fn a_leader_whose_disk_hangs_hands_over_before_any_write_times_out() {
    let tuning = Tuning {
        sync_yield: Duration::from_millis(200),
        ..Tuning::default()
    };
    let disks = Disks::started(3, tuning).await;
    let (leader, other) = (disks.cluster.leader().await, disks.cluster.follower().await);
    disks.gates[&leader].shut();
    let node = disks.cluster.node(other).clone();
    let write = tokio::spawn(async move { submit(&node, register("hangs")).await });
    let mut leadership = disks.cluster.node(other).leadership();
    let handed_over = leadership.wait_for(|seen| {
        let leads = seen.leader.as_ref();
        leads.is_some_and(|leads| leads.node_id.0 != leader)
    });
    let handed_over = timeout(LONG / 2, handed_over).await;
    drop(handed_over.expect("in time").expect("a running node"));
    // While that disk still hangs.
    submit_surely(disks.cluster.node(other), register("written"))
        .await
        .unwrap();
    disks.gates[&leader].open();
    drop(write.await.expect("no panic"));
    disks.cluster.agreed().await;
}

#[tokio::test]
async fn a_node_whose_disk_hangs_for_long_ends_without_waiting_for_it() {
    let tuning = Tuning {
        sync_timeout: Duration::from_millis(300),
        ..Tuning::default()
    };
    let disks = Disks::started(1, tuning).await;
    let node = disks.cluster.node(1);
    disks.gates[&1].shut();
    let writing = node.clone();
    let write = tokio::spawn(async move { submit(&writing, register("hangs")).await });
    let mut fatal = node.fatal();
    let ended = timeout(LONG, fatal.wait_for(Option::is_some)).await;
    let error = ended.expect("in time").expect("a running node").clone();
    let error = error.expect("a reason");
    assert!(matches!(*error, FatalError::LogHangs(_)), "{error}");
    assert!(node.gauges().log_sync_age >= Duration::from_millis(300));
    timeout(LONG, node.shutdown()).await.expect("in time");
    disks.gates[&1].open();
    drop(write.await.expect("no panic"));
}
