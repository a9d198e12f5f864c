//! What the state store must still hold after a crash, an install or a capture.

use crate::raft::type_config::LogId;
use crate::state::fsync::tests::is_durable;
use crate::state::rocks::RocksState;
use crate::state::rows::{self, AppliedPosition};
use crate::state::store::StateStore;
use flotilla_engine::store::{KeyRange, Order, Reader, Writes};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
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

/// All files below a directory.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

/// The files below a folder whose paths contain this.
fn files(folder: &Path, part: &str) -> Vec<PathBuf> {
    let found = contents(folder).into_keys();
    let found: Vec<_> = found
        .filter(|file| file.to_string_lossy().contains(part))
        .collect();
    assert!(!found.is_empty(), "{part}");
    found
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

#[test]
fn a_new_state_is_durable_with_all_its_directories() {
    let directory = tempfile::tempdir().unwrap();
    drop(RocksState::open(directory.path()).unwrap());
    for name in ["state", "snapshots", "state/CURRENT", "state/0000000001"] {
        assert!(is_durable(&directory.path().join(name)), "{name}");
    }
}

#[test]
fn a_state_whose_generation_in_use_is_unknown_is_refused_and_stays_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let store = RocksState::open(directory.path()).unwrap();
    store.write(&rows(1, "kept")).unwrap();
    store.flush().unwrap();
    drop(store);
    let current = directory.path().join("state/CURRENT");
    let refuse = || {
        let before = contents(directory.path());
        let refused = RocksState::open(directory.path()).err();
        assert_eq!(contents(directory.path()), before);
        refused.expect("a refusal").to_string()
    };
    fs::remove_file(&current).unwrap();
    let says = refuse();
    assert!(says.contains("state/CURRENT, but it is missing"), "{says}");
    fs::write(&current, "0000000002").unwrap();
    let says = refuse();
    assert!(says.contains("0000000002, but it is missing"), "{says}");
    fs::write(&current, "..").unwrap();
    assert!(refuse().contains("the name of a generation"));
    fs::write(&current, "0000000001").unwrap();
    let database = directory.path().join("state/0000000001/CURRENT");
    let bytes = fs::read(&database).unwrap();
    fs::remove_file(&database).unwrap();
    let says = refuse();
    assert!(says.contains("0000000001/CURRENT, but"), "{says}");
    fs::write(&database, bytes).unwrap();
    let store = RocksState::open(directory.path()).unwrap();
    assert_eq!(value(store.reader().as_ref()).unwrap(), "kept");
}

#[test]
fn a_first_start_that_was_cut_short_is_repeated() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("state")).unwrap();
    fs::write(directory.path().join("state/CURRENT"), "0000000001").unwrap();
    let store = RocksState::open(directory.path()).unwrap();
    assert_eq!(index(store.reader().as_ref()), None);
}

#[test]
fn leftovers_are_deleted_only_once_the_generation_in_use_is_open() {
    let directory = tempfile::tempdir().unwrap();
    drop(RocksState::open(directory.path()).unwrap());
    let state = directory.path().join("state");
    for name in ["0000000007", "lost+found"] {
        fs::create_dir(state.join(name)).unwrap();
    }
    let manifest = files(&state, "MANIFEST-");
    let bytes = fs::read(&manifest[0]).unwrap();
    fs::write(&manifest[0], "").unwrap();
    assert!(RocksState::open(directory.path()).is_err());
    assert!(state.join("0000000007").exists());
    fs::write(&manifest[0], bytes).unwrap();
    drop(RocksState::open(directory.path()).unwrap());
    assert!(!state.join("0000000007").exists());
    assert!(
        state.join("lost+found").exists(),
        "the node did not create it"
    );
}

/// A loop of links stands for errors such as too many open files: it can be undone, and root gets it too.
#[test]
fn a_snapshot_that_cannot_be_opened_for_now_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let snapshots = directory.path().join("snapshots");
    let store = RocksState::open(directory.path()).unwrap();
    store.write(&rows(7, "kept")).unwrap();
    drop(store.capture().unwrap());
    drop(store);
    for ending in ["CURRENT", ".sst"] {
        let file = &files(&snapshots, ending)[0];
        let aside = directory.path().join("aside");
        fs::rename(file, &aside).unwrap();
        symlink(file, file).unwrap();
        let store = RocksState::open(directory.path()).unwrap();
        assert!(store.captured().is_none());
        // The next one takes another name.
        let capture = store.capture().unwrap();
        assert_eq!(index(capture.as_ref()), Some(7));
        drop((capture, store));
        assert_eq!(directories(&snapshots), 2);
        fs::remove_file(file).unwrap();
        fs::rename(&aside, file).unwrap();
        let store = RocksState::open(directory.path()).unwrap();
        let captured = store.captured().expect("a capture");
        assert_eq!(value(captured.as_ref()).unwrap(), "kept");
        drop((captured, store));
        assert_eq!(directories(&snapshots), 1);
    }
}

#[test]
fn a_damaged_or_unfinished_snapshot_is_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let snapshots = directory.path().join("snapshots");
    let damages: [fn(&Path); 3] = [
        |folder| fs::remove_file(&files(folder, "CURRENT")[0]).unwrap(),
        |folder| fs::remove_file(&files(folder, ".sst")[0]).unwrap(),
        |folder| {
            // Its bytes are those of the state, too.
            let file = &files(folder, ".sst")[0];
            fs::remove_file(file).unwrap();
            fs::write(file, "short").unwrap();
        },
    ];
    for damage in damages {
        let store = RocksState::open(directory.path()).unwrap();
        store.write(&rows(7, "kept")).unwrap();
        drop(store.capture().unwrap());
        drop(store);
        damage(&snapshots);
        fs::create_dir(snapshots.join("0000000099.tmp")).unwrap();
        let store = RocksState::open(directory.path()).unwrap();
        assert!(store.captured().is_none());
        assert_eq!(directories(&snapshots), 0);
    }
}
