//! What the log must still hold after a power cut, a failing disk or a flipped bit.

use crate::environment::NoObserver;
use crate::execution::{BlockingPool, Execution};
use crate::log::device::{Durability, LogDevice, Operation};
use crate::log::memory_device::MemoryDevice;
use crate::log::record::{self, LogEntry};
use crate::log::rocks::RocksLog;
use crate::log::store::{LogOpenError, LogParts, LogStore};
use crate::log::vote::Vote;
use crate::raft::type_config::{LogId, TypeConfig};
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::type_config::TypeConfigExt;
use openraft::type_config::alias::OneshotReceiverOf;
use openraft::{EntryPayload, RaftLogReader};
use proptest::prelude::*;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

fn log_id(term: u64, index: u64) -> LogId {
    LogId::new_term_index(term, index)
}

fn entry(term: u64, index: u64) -> LogEntry {
    LogEntry {
        log_id: log_id(term, index),
        payload: EntryPayload::Blank,
    }
}

fn open(device: Arc<dyn LogDevice>) -> Result<LogStore, LogOpenError> {
    open_behind(device, watch::channel(Some(u64::MAX)).1)
}

fn open_behind(
    device: Arc<dyn LogDevice>,
    state_durable: watch::Receiver<Option<u64>>,
) -> Result<LogStore, LogOpenError> {
    let parts = LogParts {
        node_id: 1,
        device,
        observer: Arc::new(NoObserver),
        state_durable,
    };
    LogStore::open(parts, &BlockingPool::from(Execution::OwnThreads))
}

type Flushed = OneshotReceiverOf<TypeConfig, io::Result<()>>;

async fn append(store: &mut LogStore, entries: Vec<LogEntry>) -> Flushed {
    let (sender, receiver) = TypeConfig::oneshot();
    store
        .append(entries, IOFlushed::<TypeConfig>::signal(sender))
        .await
        .unwrap();
    receiver
}

async fn ids(store: &mut LogStore) -> Vec<LogId> {
    let entries = store.try_get_log_entries(..).await.unwrap();
    entries.into_iter().map(|entry| entry.log_id).collect()
}

#[tokio::test]
async fn an_entry_can_be_read_before_it_is_durable_and_survives_once_it_is() {
    let device = Arc::new(MemoryDevice::default());
    let mut store = open(device.clone()).unwrap();
    let flushed = append(&mut store, vec![entry(1, 0), entry(1, 1)]).await;
    assert_eq!(ids(&mut store).await, [log_id(1, 0), log_id(1, 1)]);
    flushed.await.unwrap().unwrap();
    let mut restarted = open(Arc::new(device.after_power_cut(0))).unwrap();
    assert_eq!(ids(&mut restarted).await, [log_id(1, 0), log_id(1, 1)]);
}

#[tokio::test]
async fn entries_for_an_append_have_no_gap_although_the_first_were_purged() {
    let mut store = open(Arc::new(MemoryDevice::default())).unwrap();
    let entries = (0..10).map(|index| entry(1, index)).collect();
    append(&mut store, entries).await.await.unwrap().unwrap();
    store.purge(log_id(1, 4)).await.unwrap();
    assert_eq!(store.limited_get_log_entries(3, 8).await.unwrap(), []);
    let rest = store.limited_get_log_entries(5, 8).await.unwrap();
    assert_eq!(rest, [entry(1, 5), entry(1, 6), entry(1, 7)]);
}

#[tokio::test]
async fn a_vote_is_durable_when_the_call_returns_and_a_commit_index_needs_no_sync() {
    let device = Arc::new(MemoryDevice::default());
    let mut store = open(device.clone()).unwrap();
    store.save_vote(&Vote::new_committed(4, 2)).await.unwrap();
    let syncs = device.syncs();
    store.save_committed(Some(log_id(4, 9))).await.unwrap();
    let mut restarted = open(Arc::new(device.after_power_cut(0))).unwrap();
    assert_eq!(
        restarted.read_vote().await.unwrap(),
        Some(Vote::new_committed(4, 2))
    );
    assert_eq!(restarted.read_committed().await.unwrap(), None);
    assert_eq!(device.syncs(), syncs);
}

#[tokio::test]
async fn entries_that_were_acknowledged_are_missed_unless_a_newer_leader_removed_them() {
    let device = Arc::new(MemoryDevice::default());
    let mut store = open(device.clone()).unwrap();
    let leader = Vote::new_committed(4, 2);
    store.save_vote(&leader).await.unwrap();
    let entries = (0..10).map(|index| entry(4, index)).collect();
    append(&mut store, entries).await.await.unwrap().unwrap();
    assert!(!store.has_lost(&leader, log_id(4, 9)));
    device.lose(9);
    let mut restarted = open(Arc::new(device.after_power_cut(0))).unwrap();
    assert!(!restarted.has_lost(&leader, log_id(4, 9)), "it is durable");
    let restarted_without = open(device).unwrap();
    assert!(restarted_without.has_lost(&leader, log_id(4, 9)));
    assert!(!restarted_without.has_lost(&leader, log_id(4, 8)));
    // A newer leader may remove them.
    let newer = Vote::new_committed(5, 3);
    restarted.save_vote(&newer).await.unwrap();
    restarted.truncate_after(Some(log_id(4, 5))).await.unwrap();
    assert!(!restarted.has_lost(&leader, log_id(4, 9)));
    assert!(restarted.has_lost(&newer, log_id(4, 9)));
}

#[tokio::test]
async fn a_log_that_has_lost_entries_is_marked_durably() {
    let device = Arc::new(MemoryDevice::default());
    let store = open(device.clone()).unwrap();
    assert_eq!(store.lost(), None);
    store.mark_lost(log_id(4, 9)).await.unwrap();
    let restarted = open(Arc::new(device.after_power_cut(0))).unwrap();
    assert_eq!(restarted.lost(), Some(log_id(4, 9)));
}

#[tokio::test]
async fn nothing_is_acknowledged_after_a_failed_write() {
    let device = Arc::new(MemoryDevice::default());
    let mut store = open(device.clone()).unwrap();
    append(&mut store, vec![entry(1, 0)])
        .await
        .await
        .unwrap()
        .unwrap();
    device.fail();
    assert!(
        append(&mut store, vec![entry(1, 1)])
            .await
            .await
            .unwrap()
            .is_err()
    );
    assert!(
        append(&mut store, vec![entry(1, 2)])
            .await
            .await
            .unwrap()
            .is_err()
    );
    assert!(store.save_vote(&Vote::new(2, 1)).await.is_err());
}

#[tokio::test]
async fn what_waits_is_made_durable_with_fewer_syncs_than_appends() {
    let device = Arc::new(MemoryDevice::default());
    let mut store = open(device.clone()).unwrap();
    let mut flushed = Vec::new();
    for index in 0..500 {
        flushed.push(append(&mut store, vec![entry(1, index)]).await);
    }
    for waiting in flushed {
        waiting.await.unwrap().unwrap();
    }
    assert!(device.syncs() < 500, "{} syncs", device.syncs());
}

#[tokio::test]
async fn a_log_without_the_entry_of_the_state_continues_after_it() {
    for applied in [log_id(2, 4), log_id(1, 20), log_id(2, 20)] {
        let device = Arc::new(MemoryDevice::default());
        let mut store = open(device.clone()).unwrap();
        let entries = (0..10).map(|index| entry(1, index)).collect();
        append(&mut store, entries).await.await.unwrap().unwrap();
        store.fit(log_id(1, 4)).await.unwrap();
        assert_eq!(ids(&mut store).await.len(), 10, "it has that entry");
        store.fit(applied).await.unwrap();
        let mut restarted = open(Arc::new(device.after_power_cut(0))).unwrap();
        for store in [&mut store, &mut restarted] {
            assert!(ids(store).await.is_empty());
            let state = store.get_log_state().await.unwrap();
            assert_eq!(state.last_purged_log_id, Some(applied));
            assert_eq!(state.last_log_id, Some(applied));
            let next = entry(2, applied.index() + 1);
            let flushed = append(store, vec![next]).await;
            flushed.await.unwrap().unwrap();
            // An older state is refused elsewhere: what it lacks is gone.
            store.fit(log_id(1, 3)).await.unwrap();
            assert_eq!(ids(store).await.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_purge_waits_until_the_state_is_durable_without_the_log() {
    let device = Arc::new(MemoryDevice::default());
    let (durable, receiver) = watch::channel(Some(3));
    let mut store = open_behind(device, receiver).unwrap();
    let entries = (0..10).map(|index| entry(1, index)).collect();
    append(&mut store, entries).await.await.unwrap().unwrap();
    let mut purging = store.clone();
    let mut purge = tokio::spawn(async move { purging.purge(log_id(1, 5)).await });
    tokio::task::yield_now().await;
    assert!(!purge.is_finished());
    assert_eq!(ids(&mut store).await.len(), 10);
    durable.send_replace(Some(5));
    (&mut purge).await.unwrap().unwrap();
    assert_eq!(ids(&mut store).await.first(), Some(&log_id(1, 6)));
}

#[tokio::test]
async fn an_altered_or_missing_record_is_refused_at_the_start() {
    let device = Arc::new(MemoryDevice::default());
    let mut store = open(device.clone()).unwrap();
    let entries = (0..10).map(|index| entry(1, index)).collect();
    append(&mut store, entries).await.await.unwrap().unwrap();
    let corrupt = device.after_power_cut(0);
    corrupt.corrupt(4);
    let refused = open(Arc::new(corrupt)).err();
    assert!(
        matches!(refused, Some(LogOpenError::Record { index: 4, .. })),
        "{refused:?}"
    );
    let lost = device.after_power_cut(0);
    lost.lose(4);
    let refused = open(Arc::new(lost)).err();
    assert!(
        matches!(
            refused,
            Some(LogOpenError::Hole {
                expected: 4,
                found: 5
            })
        ),
        "{refused:?}"
    );
}

#[derive(Clone, Debug)]
enum Step {
    Append(u8),
    /// Replaces this many of the last entries by one of the next term.
    Overwrite(u8),
    Purge(u8),
    Vote,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..8_u8).prop_map(Step::Append),
        1 => (1..5_u8).prop_map(Step::Overwrite),
        1 => (1..5_u8).prop_map(Step::Purge),
        1 => Just(Step::Vote),
    ];
    proptest::collection::vec(step, 1..40)
}

/// What was promised to openraft.
#[derive(Default)]
struct Model {
    ids: Vec<LogId>,
    purged: Option<LogId>,
    vote: Option<Vote>,
    term: u64,
}

async fn take(step: &Step, store: &mut LogStore, model: &mut Model) {
    let next = model
        .ids
        .last()
        .or(model.purged.as_ref())
        .map_or(0, |last| last.index() + 1);
    match step {
        Step::Append(count) => {
            let entries: Vec<_> = (next..next + u64::from(*count))
                .map(|index| entry(model.term, index))
                .collect();
            model.ids.extend(entries.iter().map(|entry| entry.log_id));
            append(store, entries).await.await.unwrap().unwrap();
        }
        Step::Overwrite(count) => {
            let kept = model.ids.len().saturating_sub(usize::from(*count));
            model.ids.truncate(kept);
            model.term += 1;
            let last = model.ids.last().copied().or(model.purged);
            store.truncate_after(last).await.unwrap();
            let index = last.map_or(0, |last| last.index() + 1);
            model.ids.push(log_id(model.term, index));
            append(store, vec![entry(model.term, index)])
                .await
                .await
                .unwrap()
                .unwrap();
        }
        Step::Purge(count) => {
            let gone = usize::from(*count).min(model.ids.len());
            if let Some(last) = model.ids.drain(..gone).next_back() {
                model.purged = Some(last);
                store.purge(last).await.unwrap();
            }
        }
        Step::Vote => {
            let vote = Vote::new(model.term + 1, 1);
            store.save_vote(&vote).await.unwrap();
            model.vote = Some(vote);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_a_power_cut_the_log_has_all_that_was_acknowledged_and_nothing_else(
        steps in steps(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let device = Arc::new(MemoryDevice::default());
            let mut store = open(device.clone()).unwrap();
            let mut model = Model::default();
            for step in &steps {
                take(step, &mut store, &mut model).await;
                let mut restarted = open(Arc::new(device.after_power_cut(0))).unwrap();
                for store in [&mut store, &mut restarted] {
                    assert_eq!(ids(store).await, model.ids);
                    let state = store.get_log_state().await.unwrap();
                    assert_eq!(state.last_purged_log_id, model.purged);
                    assert_eq!(state.last_log_id, model.ids.last().copied().or(model.purged));
                    assert_eq!(store.read_vote().await.unwrap(), model.vote);
                }
            }
        });
    }
}

fn put(term: u64, index: u64) -> Operation {
    Operation::Put {
        index,
        record: record::encode(&entry(term, index)),
    }
}

/// Copies the files as a killed process leaves them.
fn copy_as_killed(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[tokio::test]
async fn what_a_killed_process_synced_is_there_when_rocksdb_opens_again() {
    let directory = tempfile::tempdir().unwrap();
    let device = RocksLog::open(&directory.path().join("log")).unwrap();
    let puts: Vec<_> = (0..100).map(|index| put(1, index)).collect();
    device.write(&puts, Durability::Synced).unwrap();
    device
        .write(
            &[Operation::Truncate { from: 90 }, put(2, 90)],
            Durability::Synced,
        )
        .unwrap();
    device
        .write(&[Operation::Purge { to: 9 }], Durability::Synced)
        .unwrap();
    let killed = directory.path().join("killed");
    copy_as_killed(&directory.path().join("log"), &killed);
    let reopened = RocksLog::open(&killed).unwrap();
    let mut indexes = Vec::new();
    reopened
        .read(0, u64::MAX, &mut |index, bytes| {
            assert!(record::verify(&bytes).is_ok());
            indexes.push(index);
            true
        })
        .unwrap();
    assert_eq!(indexes, (10..=90).collect::<Vec<_>>());
}

#[tokio::test]
async fn rocksdb_refuses_a_log_with_an_altered_byte_before_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let device = RocksLog::open(&directory.path().join("log")).unwrap();
    for index in 0..100 {
        device.write(&[put(1, index)], Durability::Synced).unwrap();
    }
    let killed = directory.path().join("killed");
    copy_as_killed(&directory.path().join("log"), &killed);
    let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "log");
    let files = std::fs::read_dir(&killed)
        .unwrap()
        .map(|file| file.unwrap().path());
    let log = files
        .into_iter()
        .find(|path| is_log(path))
        .expect("a write-ahead log");
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(&log, bytes).unwrap();
    let refused = RocksLog::open(&killed)
        .err()
        .expect("a corrupt log is not opened");
    assert_eq!(refused.kind(), rocksdb::ErrorKind::Corruption);
}
