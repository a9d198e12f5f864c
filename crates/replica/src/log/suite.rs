//! Runs openraft's own test suite for stores over both real stores.

use crate::clock::{StampClock, SystemClock};
use crate::environment::NoObserver;
use crate::execution::{BlockingPool, Execution};
use crate::log::record::LogEntry;
use crate::log::store::{LogParts, LogStore};
use crate::membership::{StoredMembership, term_of};
use crate::raft::type_config::LogId;
use crate::raft::type_config::TypeConfig;
use crate::rocks_storage::RocksStorage;
use crate::state::applier::{AppliedState, Applier};
use crate::state::machine::Machine;
use crate::state::snapshot::SnapshotData;
use crate::storage::Storage;
use flotilla_engine::ENGINE_VERSION;
use futures::{Stream, StreamExt, stream};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::{EntryPayload, OptionalSend, StorageError};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// The suite skips entries when it applies some, which the machine refuses: here they are blank.
struct GapFilling(Machine);

impl RaftStateMachine<TypeConfig> for GapFilling {
    type SnapshotData = SnapshotData;
    type SnapshotBuilder = Machine;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        self.0.applied_state().await
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let applied = self
                .0
                .applied_state()
                .await?
                .0
                .map_or(0, |log_id| log_id.index());
            let term = term_of(&entry.log_id);
            let missing = (applied + 1..entry.log_id.index()).map(|index| {
                let log_id = LogId::new_term_index(term, index);
                Ok((
                    LogEntry {
                        log_id,
                        payload: EntryPayload::Blank,
                    },
                    None,
                ))
            });
            let filled: Vec<_> = missing.chain([Ok((entry, responder))]).collect();
            self.0.apply(stream::iter(filled)).await?;
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Machine {
        self.0.get_snapshot_builder().await
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMetaOf<TypeConfig>,
        snapshot: SnapshotData,
    ) -> Result<(), io::Error> {
        self.0.install_snapshot(meta, snapshot).await
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<SnapshotOf<TypeConfig, SnapshotData>>, io::Error> {
        self.0.get_current_snapshot().await
    }
}

/// Lets a store close before its directory is deleted and the next one opens.
struct Guard {
    blocking_pool: BlockingPool,
    _directory: TempDir,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.blocking_pool.join(Duration::from_secs(30));
    }
}

struct Builder;

impl StoreBuilder<TypeConfig, LogStore, GapFilling, Guard> for Builder {
    async fn build(&self) -> Result<(Guard, LogStore, GapFilling), StorageError<TypeConfig>> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let device = RocksStorage
            .open_log(directory.path())
            .expect("an empty log");
        let store = RocksStorage
            .open_state(directory.path())
            .expect("an empty state");
        let blocking_pool = BlockingPool::from(Execution::OwnThreads);
        // The suite purges what it never applied, which this replica does not do.
        let state_durable = watch::channel(Some(u64::MAX)).1;
        let observer = Arc::new(NoObserver);
        let log_parts = LogParts {
            node_id: 1,
            device,
            observer: observer.clone(),
            state_durable,
        };
        let log = LogStore::open(log_parts, &blocking_pool).expect("an empty log");
        let applier = Applier {
            engine_version: ENGINE_VERSION,
            node_id: 1,
            digest_interval: 1_024,
            store,
            clock: Arc::new(StampClock::new(Arc::new(SystemClock::default()), 1)),
            applied_state: AppliedState::new(),
            observer,
        };
        let machine = Machine::start(applier, &blocking_pool).expect("an empty state");
        let guard = Guard {
            blocking_pool,
            _directory: directory,
        };
        Ok((guard, log, GapFilling(machine)))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stores_pass_the_suite_of_openraft() {
    Suite::test_all(Builder).await.expect("the suite");
}
