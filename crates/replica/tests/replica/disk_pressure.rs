//! Disks that fill up, and become free again.

use crate::cluster::{Cluster, LONG, register, submit};
use crate::snapshots::{eager, write};
use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_engine::{Body, Command, DeleteAction, NodeId};
use flotilla_replica::{
    ClusterChange, DirectoryLock, DiskPressure, DiskSpace, Environment, LogDevice, Replica,
    RocksStorage, StateStore, Storage, StorageError, SubmitError, Tuning,
};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::sleep;

const RESERVE_BYTES: u64 = 1_000;
const FREE: u64 = 2 * RESERVE_BYTES;
const LOW: u64 = RESERVE_BYTES * 3 / 4;
const FULL: u64 = RESERVE_BYTES * 3 / 8;
/// Not even a leader's commands in flight are written.
const BARE: u64 = RESERVE_BYTES / 8;
/// Enough for a whole state too.
const VAST: u64 = 1 << 40;

/// A disk with as much free space as the test sets.
struct TestedDisk(Arc<AtomicU64>);

impl Storage for TestedDisk {
    fn lock(&self, data_directory: &Path) -> io::Result<DirectoryLock> {
        RocksStorage.lock(data_directory)
    }

    fn open_log(&self, data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError> {
        RocksStorage.open_log(data_directory)
    }

    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        RocksStorage.open_state(data_directory)
    }

    fn space(&self, _data_directory: &Path) -> io::Result<Option<DiskSpace>> {
        let free_bytes = self.0.load(Ordering::Relaxed);
        let bytes = FREE;
        Ok(Some(DiskSpace { free_bytes, bytes }))
    }
}

/// Three nodes and their disks.
struct Disks {
    cluster: Cluster,
    free: BTreeMap<u64, Arc<AtomicU64>>,
}

impl Disks {
    async fn started() -> Self {
        let tuning = Tuning {
            upkeep_interval: Duration::from_millis(100),
            ..Tuning::default()
        };
        Self::tuned(tuning).await
    }

    async fn tuned(tuning: Tuning) -> Self {
        let tuning = Tuning {
            disk_reserve_bytes: RESERVE_BYTES,
            ..tuning
        };
        let cluster = Cluster::new(3, tuning);
        let free = (1..=3).map(|id| (id, Arc::new(AtomicU64::new(FREE))));
        let free = free.collect();
        let mut disks = Self { cluster, free };
        for id in 1..=3 {
            disks.start(id).await;
        }
        disks.cluster.form(1).await;
        disks.cluster.leader().await;
        disks
    }

    /// Starts a node on its disk.
    async fn start(&mut self, id: u64) {
        let environment = Environment {
            storage: Arc::new(TestedDisk(Arc::clone(&self.free[&id]))),
            ..Environment::default()
        };
        self.cluster.start_with(id, environment).await;
    }

    /// Sets the free space of a node's disk, and waits until the node has measured it.
    async fn leave(&self, id: u64, bytes: u64, disk_pressure: DiskPressure) {
        self.free[&id].store(bytes, Ordering::Relaxed);
        until(async || self.cluster.node(id).gauges().disk_pressure == disk_pressure).await;
    }

    async fn leave_on_all(&self, bytes: u64, disk_pressure: DiskPressure) {
        for id in self.cluster.ids() {
            self.leave(id, bytes, disk_pressure).await;
        }
    }
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !is_so().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, looking).await.expect("in time");
}

/// A command that completes open work.
fn delete(name: &str) -> Command {
    let body = Body::DeleteAction(DeleteAction {
        name: ActionName::new(name).expect("a legal name"),
    });
    body.into_command(Namespace::default_namespace())
}

/// Waits until the cluster accepts a command at this node.
async fn taken(replica: &Replica, command: impl Fn() -> Command) {
    until(async || match submit(replica, command()).await {
        Ok(replied) => replied.is_ok(),
        Err(SubmitError::DiskLow) => false,
        Err(error) => panic!("expected room or none, but {error}"),
    })
    .await;
}

/// Waits until the cluster refuses a command at this node for lack of disk space.
async fn refused(replica: &Replica, command: impl Fn() -> Command) {
    until(async || matches!(submit(replica, command()).await, Err(SubmitError::DiskLow))).await;
}

#[tokio::test]
async fn full_disks_stop_new_work_first_then_all_and_everything_resumes_when_they_empty() {
    let disks = Disks::started().await;
    let follower = disks.cluster.follower().await;
    let via = disks.cluster.node(follower);
    for name in ["one", "two"] {
        submit(via, register(name)).await.unwrap().unwrap();
    }

    disks.leave_on_all(LOW, DiskPressure::Low).await;
    refused(via, || register("three")).await;
    taken(via, || delete("one")).await;

    disks.leave_on_all(FULL, DiskPressure::Critical).await;
    refused(via, || delete("two")).await;
    let deadline = tokio::time::Instant::now() + LONG;
    via.read_index(deadline).await.expect("reads continue");

    disks.leave_on_all(FREE, DiskPressure::Normal).await;
    taken(via, || register("three")).await;
    taken(via, || delete("two")).await;
    disks.cluster.agreed().await;
}

#[tokio::test]
async fn a_leader_whose_disk_is_full_lets_one_with_room_lead() {
    let disks = Disks::started().await;
    let leader = disks.cluster.leader().await;
    disks.leave(leader, LOW, DiskPressure::Low).await;
    until(async || disks.cluster.leader().await != leader).await;
    taken(disks.cluster.node(leader), || register("one")).await;
    disks.cluster.agreed().await;
}

#[tokio::test]
async fn a_leader_whose_disk_is_full_does_not_wait_for_a_voter_that_is_gone() {
    let mut disks = Disks::started().await;
    let leader = disks.cluster.leader().await;
    let ids = disks.cluster.ids().into_iter();
    let followers: Vec<u64> = ids.filter(|id| *id != leader).collect();
    // Its last report says that its disk has space.
    disks.cluster.kill(followers[1]);
    disks.leave(leader, LOW, DiskPressure::Low).await;
    until(async || disks.cluster.leader().await == followers[0]).await;
    taken(disks.cluster.node(leader), || register("one")).await;
}

#[tokio::test]
async fn a_leader_is_elected_while_all_disks_are_full() {
    let mut disks = Disks::started().await;
    let leader = disks.cluster.leader().await;
    submit(disks.cluster.node(leader), register("one"))
        .await
        .unwrap()
        .unwrap();
    disks.cluster.agreed().await;
    disks.leave_on_all(BARE, DiskPressure::Critical).await;
    disks.cluster.kill(leader);
    disks.start(leader).await;
    disks.leave(leader, BARE, DiskPressure::Critical).await;
    // It has written an entry of its term, and the others too.
    disks.cluster.leader().await;
    let via = disks.cluster.node(leader);
    refused(via, || delete("one")).await;
    let deadline = tokio::time::Instant::now() + LONG;
    via.read_index(deadline).await.expect("reads continue");
    // So are membership changes: removing a node may be the only way out.
    let victim = disks.cluster.follower().await;
    let node_id = NodeId(victim);
    let via = disks.cluster.leader().await;
    let remove = ClusterChange::RemoveNode { node_id };
    assert!(disks.cluster.change(via, remove).await.unwrap());
    disks.cluster.kill(victim);
    disks.leave_on_all(FREE, DiskPressure::Normal).await;
    taken(disks.cluster.node(via), || delete("one")).await;
    disks.cluster.agreed().await;
}

#[tokio::test]
async fn a_follower_whose_disk_is_nearly_full_takes_what_others_agree_on() {
    let disks = Disks::started().await;
    let follower = disks.cluster.follower().await;
    let leader = disks.cluster.leader().await;
    disks.leave(follower, FULL, DiskPressure::Critical).await;
    for name in ["one", "two", "three"] {
        taken(disks.cluster.node(leader), || register(name)).await;
    }
    disks.cluster.agreed().await;
}

#[tokio::test]
async fn a_follower_whose_disk_is_full_takes_no_entries_until_it_empties() {
    let disks = Disks::started().await;
    let follower = disks.cluster.follower().await;
    let leader = disks.cluster.leader().await;
    disks.leave(follower, BARE, DiskPressure::Critical).await;
    let before = disks.cluster.node(follower).gauges().last_log_index;
    for name in ["one", "two", "three"] {
        taken(disks.cluster.node(leader), || register(name)).await;
    }
    // It took only what was in flight when its disk filled up.
    let after = disks.cluster.node(follower).gauges().last_log_index;
    assert!(after <= before + 1, "{before} and then {after}");
    assert!(disks.cluster.node(leader).gauges().last_log_index >= before + 3);
    disks.leave(follower, FREE, DiskPressure::Normal).await;
    disks.cluster.agreed().await;
}

#[tokio::test]
async fn a_follower_whose_disk_is_full_takes_no_state_until_it_empties() {
    let mut disks = Disks::tuned(eager()).await;
    disks.leave_on_all(VAST, DiskPressure::Normal).await;
    let leader = disks.cluster.leader().await;
    let absent = disks.cluster.follower().await;
    let last = disks.cluster.node(absent).gauges().last_log_index;
    disks.cluster.stop(absent).await;
    write(&disks.cluster, leader, 0..200).await;
    let leading = disks.cluster.node(leader);
    until(async || leading.gauges().purged_index > last + 1).await;
    disks.free[&absent].store(FULL, Ordering::Relaxed);
    disks.start(absent).await;
    // It is offered one immediately, and repeatedly.
    write(&disks.cluster, leader, 200..220).await;
    let behind = disks.cluster.node(absent);
    assert_eq!(behind.gauges().disk_pressure, DiskPressure::Critical);
    assert_eq!(behind.counters().snapshots_installed, 0);
    disks.leave(absent, VAST, DiskPressure::Normal).await;
    disks.cluster.agreed().await;
    let caught_up = disks.cluster.node(absent).counters();
    assert!(caught_up.snapshots_installed > 0);
}
