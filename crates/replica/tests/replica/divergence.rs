//! A replica whose state has diverged (design rule 11).

use crate::cluster::{Cluster, LONG, register, submit};
use flotilla_engine::NodeId;
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError, Visitor, Writes};
use flotilla_replica::{
    DirectoryLock, Environment, FatalError, Incoming, LogDevice, Replica, RocksStorage,
    SharedReader, StartError, StateStore, Storage, StorageError, SubmitError, Tuning,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

/// What the faulty node cannot see in its own state.
const FORGOTTEN: &[u8] = b"forgotten";

/// What is wrong with a node's storage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Reads miss some rows: a fault that only comparing replicas can find.
    Forgetful,
    /// A received state cannot be installed.
    Uninstallable,
}

/// Storage with a fault.
struct FaultyStorage(Fault);

impl Storage for FaultyStorage {
    fn lock(&self, data_directory: &Path) -> io::Result<DirectoryLock> {
        RocksStorage.lock(data_directory)
    }

    fn open_log(&self, data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError> {
        RocksStorage.open_log(data_directory)
    }

    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        Ok(Arc::new(FaultyState(
            RocksStorage.open_state(data_directory)?,
            self.0,
        )))
    }
}

struct FaultyState(Arc<dyn StateStore>, Fault);

impl StateStore for FaultyState {
    fn reader(&self) -> Arc<dyn SharedReader> {
        match self.1 {
            Fault::Forgetful => Arc::new(ForgetfulReader(self.0.reader())),
            Fault::Uninstallable => self.0.reader(),
        }
    }

    fn frozen(&self, read: &mut dyn FnMut(&dyn Reader)) {
        self.0.frozen(read);
    }

    fn write(&self, writes: &Writes) -> Result<(), StoreError> {
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
        let incoming = self.0.receive()?;
        Ok(match self.1 {
            Fault::Forgetful => incoming,
            Fault::Uninstallable => Box::new(Uninstallable(incoming)),
        })
    }
}

struct Uninstallable(Box<dyn Incoming>);

impl Incoming for Uninstallable {
    fn write(&mut self, writes: &Writes) -> Result<(), StoreError> {
        self.0.write(writes)
    }

    fn reader(&self) -> &dyn Reader {
        self.0.reader()
    }

    fn install(self: Box<Self>) -> Result<(), StoreError> {
        Err(StoreError("no space is left".into()))
    }
}

struct ForgetfulReader(Arc<dyn SharedReader>);

fn is_forgotten(key: &[u8]) -> bool {
    key.windows(FORGOTTEN.len())
        .any(|window| window == FORGOTTEN)
}

impl Reader for ForgetfulReader {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if is_forgotten(key) {
            Ok(None)
        } else {
            self.0.get(key)
        }
    }

    fn scan(&self, range: &KeyRange, order: Order, visitor: Visitor<'_>) -> Result<(), StoreError> {
        self.0.scan(range, order, visitor)
    }
}

#[tokio::test]
async fn a_replica_that_a_majority_proves_wrong_stops_and_is_rebuilt_at_its_next_start() {
    let tuning = Tuning {
        digest_interval: 8,
        ..Tuning::default()
    };
    let mut cluster = Cluster::started(3, tuning).await;
    submit(cluster.node(1), register("forgotten"))
        .await
        .unwrap()
        .unwrap();
    // A node that has yet to apply it would remember it.
    cluster.agreed().await;
    let broken = cluster.follower().await;
    cluster.stop(broken).await;
    let environment = Environment {
        storage: Arc::new(FaultyStorage(Fault::Forgetful)),
        ..Environment::default()
    };
    cluster.start_with(broken, environment.clone()).await;
    let leader = cluster.leader().await;
    // A second registration changes nothing, unless a node has lost the first.
    submit(cluster.node(leader), register("forgotten"))
        .await
        .unwrap()
        .unwrap();
    let mut fatal = cluster.node(broken).fatal();
    let found = async {
        for number in 0.. {
            tokio::select! {
                found = fatal.wait_for(Option::is_some) => return found.unwrap().clone().unwrap(),
                written = submit(cluster.node(leader), register(&format!("action-{number}"))) => {
                    written.unwrap().unwrap();
                }
            }
        }
        unreachable!("the numbers do not end");
    };
    let found = tokio::time::timeout(LONG, found).await.expect("in time");
    assert!(matches!(*found, FatalError::Diverged(_)), "{found}");
    let refused = submit(cluster.node(broken), register("more")).await;
    assert_eq!(refused.unwrap_err(), SubmitError::Diverged);
    cluster.stop(broken).await;
    submit(cluster.node(leader), register("after"))
        .await
        .unwrap()
        .unwrap();
    // A process that reads correctly again takes the others' state, and is a healthy member.
    cluster.start(broken).await;
    submit(cluster.node(leader), register("again"))
        .await
        .unwrap()
        .unwrap();
    cluster.agreed().await;
    assert_eq!(cluster.node(broken).counters().snapshots_installed, 1);
    assert!(cluster.node(broken).fatal().borrow().is_none());
    // It is rebuilt once: the next start finds nothing wrong.
    cluster.stop(broken).await;
    cluster.start(broken).await;
    cluster.agreed().await;
    assert_eq!(cluster.node(broken).counters().snapshots_installed, 0);
}

/// Marks the state of a stopped node as diverged after its first entry.
fn condemn(data_directory: &Path) {
    let state = RocksStorage.open_state(data_directory).expect("a state");
    let divergence = (vec![0xF2, 2], Some(vec![1, 0, 1, 1, 2]));
    let written = state.write(&Writes::from([divergence]));
    written.and_then(|()| state.flush()).expect("it is written");
}

#[tokio::test]
async fn a_state_that_cannot_be_replaced_ends_the_start_and_no_member_is_asked_for_ever() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    submit(cluster.node(1), register("pack"))
        .await
        .unwrap()
        .unwrap();
    cluster.agreed().await;
    let broken = cluster.follower().await;
    cluster.stop(broken).await;
    condemn(&cluster.data_directory(broken));
    let environment = Environment {
        storage: Arc::new(FaultyStorage(Fault::Uninstallable)),
        ..Environment::default()
    };
    let started = timeout(LONG, Replica::start(cluster.config(broken), environment)).await;
    let error = started.expect("in time").err().expect("it does not start");
    assert!(matches!(error, StartError::NotRebuilt(_)), "{error}");
    assert!(error.to_string().contains("no space is left"), "{error}");
    assert!(error.hint().contains("disk"), "{}", error.hint());
    // Nothing is lost by that: with a working disk it continues.
    cluster.start(broken).await;
    cluster.agreed().await;
    assert_eq!(cluster.node(broken).counters().snapshots_installed, 1);
}

#[tokio::test]
async fn a_start_that_is_given_up_while_the_state_is_replaced_leaves_the_directory_free() {
    let mut cluster = Cluster::started(2, Tuning::default()).await;
    cluster.stop(1).await;
    cluster.stop(2).await;
    let directory = cluster.data_directory(1);
    condemn(&directory);
    // It is asked for its state, and does not respond.
    let other = TcpListener::bind(cluster.config(2).peer_listen)
        .await
        .unwrap();
    let response = async {
        tokio::select! {
            started = Replica::start(cluster.config(1), Environment::default()) => started.map(|_| ()),
            response = other.accept() => {
                response.unwrap();
                Ok(())
            }
        }
    };
    timeout(LONG, response).await.expect("in time").unwrap();
    let lock = RocksStorage.lock(&directory).unwrap();
    RocksStorage.open_log(&directory).unwrap();
    RocksStorage.open_state(&directory).unwrap();
    drop(lock);
}

/// With one of three gone, the other two need each other's votes: neither may wait until the other
/// has applied more.
#[tokio::test]
async fn a_state_is_replaced_by_an_older_one_where_the_log_has_the_rest() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let leader = cluster.leader().await;
    let broken = cluster.follower().await;
    let behind = 6 - leader - broken;
    submit(cluster.node(leader), register("before"))
        .await
        .unwrap()
        .unwrap();
    cluster.agreed().await;
    cluster.stop(behind).await;
    for number in 0..20 {
        let command = register(&format!("action-{number}"));
        submit(cluster.node(leader), command)
            .await
            .unwrap()
            .unwrap();
    }
    let (applied, _) = cluster.agreed().await;
    // It is of the wrong state, and of more of it than the state that replaces it.
    let snapshot = cluster
        .node(broken)
        .snapshot(NodeId(broken), Instant::now() + LONG);
    assert!(snapshot.await.unwrap() >= applied);
    cluster.stop(broken).await;
    cluster.stop(leader).await;
    condemn(&cluster.data_directory(broken));

    cluster.start(behind).await;
    let started = timeout(LONG, cluster.start(broken)).await;
    started.expect("it waits for no election");
    cluster.leader().await;
    submit(cluster.node(behind), register("after"))
        .await
        .unwrap()
        .unwrap();
    assert!(cluster.agreed().await.0 > applied);
    assert_eq!(cluster.node(broken).counters().snapshots_installed, 1);
    cluster.start(leader).await;
    cluster.agreed().await;
}
