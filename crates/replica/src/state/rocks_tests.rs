//! What the state store must still hold after a crash, an install or a capture.

use crate::raft::type_config::LogId;
use crate::state::rocks::RocksState;
use crate::state::rows::{self, AppliedPosition};
use crate::state::store::StateStore;
use flotilla_engine::store::{KeyRange, Order, Reader, Writes};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn rows(index: u64, value: &str) -> Writes {
    let mut writes = Writes::from([(vec![1, 1], Some(value.as_bytes().to_vec()))]);
    let log_id = Some(LogId::new_term_index(1, index));
    rows::put_applied_position(
        &mut writes,
        &AppliedPosition {
            log_id,
            digest: u128::from(index),
            now_ms: index,
        },
    );
    writes
}

fn value(reader: &dyn Reader) -> Option<String> {
    reader
        .get(&[1, 1])
        .unwrap()
        .map(|bytes| String::from_utf8(bytes).unwrap())
}

fn index(reader: &dyn Reader) -> Option<u64> {
    rows::applied_position(reader).unwrap().index()
}

fn directories(path: &Path) -> usize {
    fs::read_dir(path)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .count()
}

/// Copies a data directory as a killed process leaves it.
fn copy_as_killed(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_as_killed(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_killed_process_leaves_all_that_was_flushed_and_no_half_entry() {
    let directory = tempfile::tempdir().unwrap();
    let store = RocksState::open(&directory.path().join("live")).unwrap();
    store.write(&rows(1, "flushed")).unwrap();
    store.flush().unwrap();
    store.write(&rows(2, "not flushed")).unwrap();
    copy_as_killed(
        &directory.path().join("live"),
        &directory.path().join("killed"),
    );
    let reopened = RocksState::open(&directory.path().join("killed")).unwrap();
    let reader = reopened.reader();
    assert_eq!(index(reader.as_ref()), Some(1));
    assert_eq!(value(reader.as_ref()).unwrap(), "flushed");
    assert_eq!(value(store.reader().as_ref()).unwrap(), "not flushed");
}

#[test]
fn a_capture_stays_as_it_was_and_the_newest_one_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = RocksState::open(directory.path()).unwrap();
    store.write(&rows(1, "one")).unwrap();
    let first = store.capture().unwrap();
    store.write(&rows(2, "two")).unwrap();
    assert_eq!(value(first.as_ref()).unwrap(), "one");
    drop(store.capture().unwrap());
    store.write(&rows(3, "three")).unwrap();
    drop((first, store));
    let reopened = RocksState::open(directory.path()).unwrap();
    let captured = reopened.captured().expect("a capture");
    assert_eq!(
        (index(captured.as_ref()), value(captured.as_ref()).unwrap()),
        (Some(2), "two".into())
    );
    assert_eq!(directories(&directory.path().join("snapshots")), 1);
}

#[test]
fn received_rows_replace_all_there_were_and_survive_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let store = RocksState::open(&directory.path().join("live")).unwrap();
    store
        .write(&Writes::from([(vec![1, 2], Some(b"gone".to_vec()))]))
        .unwrap();
    let before = store.reader();
    let mut incoming = store.receive().unwrap();
    incoming.write(&rows(9, "received")).unwrap();
    incoming.install().unwrap();
    assert_eq!(
        before.get(&[1, 2]).unwrap().unwrap(),
        b"gone",
        "readers keep what they had"
    );
    drop(before);
    copy_as_killed(
        &directory.path().join("live"),
        &directory.path().join("killed"),
    );
    let reopened = RocksState::open(&directory.path().join("killed")).unwrap();
    let reader = reopened.reader();
    assert_eq!(value(reader.as_ref()).unwrap(), "received");
    assert_eq!(reader.get(&[1, 2]).unwrap(), None);
    assert_eq!(directories(&directory.path().join("killed/state")), 1);
}

/// The copy may hold wrong rows, and later ones than those that replace them.
#[test]
fn received_rows_replace_the_captured_copy_too() {
    let directory = tempfile::tempdir().unwrap();
    let store = RocksState::open(&directory.path().join("live")).unwrap();
    store.write(&rows(12, "wrong")).unwrap();
    drop(store.capture().unwrap());
    let mut incoming = store.receive().unwrap();
    incoming.write(&rows(9, "received")).unwrap();
    incoming.install().unwrap();
    assert!(store.captured().is_none());
    copy_as_killed(
        &directory.path().join("live"),
        &directory.path().join("killed"),
    );
    let reopened = RocksState::open(&directory.path().join("killed")).unwrap();
    assert!(reopened.captured().is_none());
    let captured = store.capture().unwrap();
    assert_eq!(value(captured.as_ref()).unwrap(), "received");
}

#[test]
fn rows_that_were_not_installed_leave_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let store = RocksState::open(&directory.path().join("live")).unwrap();
    store.write(&rows(1, "kept")).unwrap();
    store.flush().unwrap();
    let mut incoming = store.receive().unwrap();
    incoming.write(&rows(9, "half")).unwrap();
    copy_as_killed(
        &directory.path().join("live"),
        &directory.path().join("killed"),
    );
    drop(incoming);
    assert_eq!(directories(&directory.path().join("live/state")), 1);
    let reopened = RocksState::open(&directory.path().join("killed")).unwrap();
    assert_eq!(value(reopened.reader().as_ref()).unwrap(), "kept");
    assert_eq!(directories(&directory.path().join("killed/state")), 1);
}

#[test]
fn a_frozen_view_does_not_see_later_writes_and_scans_both_ways() {
    let directory = tempfile::tempdir().unwrap();
    let store = RocksState::open(directory.path()).unwrap();
    let row = |byte: u8| (vec![1, byte], Some(vec![byte]));
    store
        .write(&Writes::from([row(1), row(2), row(3)]))
        .unwrap();
    store.frozen(&mut |frozen| {
        store
            .write(&Writes::from([row(4), (vec![1, 2], None)]))
            .unwrap();
        let scanned = |order| {
            let mut seen = Vec::new();
            frozen
                .scan(&KeyRange::prefix(&[1]), order, &mut |key, _| {
                    seen.push(key[1]);
                    ControlFlow::Continue(())
                })
                .unwrap();
            seen
        };
        assert_eq!(scanned(Order::Ascending), [1, 2, 3]);
        assert_eq!(scanned(Order::Descending), [3, 2, 1]);
    });
}

#[test]
fn a_capture_beside_writes_has_whole_ones_and_all_that_went_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = RocksState::open(directory.path()).unwrap();
    let is_over = AtomicBool::new(false);
    let write = |index: u64| store.write(&rows(index, &index.to_string())).unwrap();
    write(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut indexes = 2..;
            while !is_over.load(Ordering::Relaxed) {
                indexes.by_ref().take(100).for_each(write);
            }
        });
        for _ in 0..10 {
            let before = index(store.reader().as_ref());
            let capture = store.capture().unwrap();
            let captured = index(capture.as_ref());
            assert!(captured >= before, "{captured:?}, {before:?}");
            let captured = captured.map(|index| index.to_string());
            assert_eq!(value(capture.as_ref()), captured);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
