//! A replica whose state differs from the others' (design rule 11).

use crate::cluster::{Cluster, LONG, register, submit};
use flotilla_engine::store::{KeyRange, Order, Reader, StoreError, Visitor, Writes};
use flotilla_replica::{
    DirectoryLock, FatalError, Hooks, Incoming, LogDevice, RocksStorage, SharedReader, StateStore,
    Storage, StorageError, SubmitError, Tuning,
};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What the broken node cannot see in its own state.
const FORGOTTEN: &[u8] = b"forgotten";

/// Storage whose reads miss some rows: a fault that only comparing replicas can find.
struct ForgetfulStorage;

impl Storage for ForgetfulStorage {
    fn lock(&self, data_directory: &Path) -> io::Result<DirectoryLock> {
        RocksStorage.lock(data_directory)
    }

    fn open_log(&self, data_directory: &Path) -> Result<Arc<dyn LogDevice>, StorageError> {
        RocksStorage.open_log(data_directory)
    }

    fn open_state(&self, data_directory: &Path) -> Result<Arc<dyn StateStore>, StorageError> {
        Ok(Arc::new(ForgetfulState(
            RocksStorage.open_state(data_directory)?,
        )))
    }
}

struct ForgetfulState(Arc<dyn StateStore>);

impl StateStore for ForgetfulState {
    fn reader(&self) -> Arc<dyn SharedReader> {
        Arc::new(ForgetfulReader(self.0.reader()))
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
    // Whoever has yet to apply it would remember it.
    cluster.agreed().await;
    let broken = cluster.follower().await;
    cluster.stop(broken).await;
    let hooks = Hooks {
        storage: Arc::new(ForgetfulStorage),
        ..Hooks::default()
    };
    cluster.start_with(broken, hooks.clone()).await;
    let leader = cluster.leader().await;
    // A second registration changes nothing, unless one has forgotten the first.
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
    // A process that reads well again takes the others' state, and is one of them.
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
