//! Backups: their content, restoring them, and what verification finds wrong.

use crate::cluster::{Cluster, LONG, REGISTERED, UNCHANGED, copy_as_killed, register, submit};
use crate::records::{Payload, last_of, record};
use flotilla_engine::{Body, NodeId};
use flotilla_replica::{
    BackupError, BackupFault, BackupOrigin, BackupSummary, Durability, Environment, Fact,
    OfflineError, Operation, Replica, RestoreError, RestoredMember, RocksStorage, StartError,
    Storage, StorageError, Tuning, backup_directory, restore, verify,
};
use futures::future::join_all;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tokio::time::Instant;

async fn write(replica: &Replica, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let command = register(&format!("action-{number}"));
        let submitted = submit(replica, command).await.expect("a leader");
        assert_eq!(submitted, Ok(REGISTERED));
    }
}

/// The bytes of an online backup.
async fn taken(replica: &Replica) -> Vec<u8> {
    let mut backup = replica
        .backup(Instant::now() + LONG)
        .await
        .expect("a backup");
    let mut bytes = Vec::new();
    while let Some(piece) = backup.next().await.expect("the next bytes") {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

/// The bytes of an offline backup.
fn rescued(directory: &Path) -> Result<Vec<u8>, OfflineError> {
    let mut bytes = Vec::new();
    let mut append = |piece: bytes::Bytes| {
        bytes.extend_from_slice(&piece);
        Ok(())
    };
    backup_directory(directory, "test".to_owned(), &mut append)?;
    Ok(bytes)
}

fn checked(bytes: &[u8]) -> Result<BackupSummary, BackupFault> {
    verify(bytes, |_| {})
}

fn rows(summary: &BackupSummary, table: &str) -> u64 {
    let table = summary.tables.iter().find(|found| found.name == table);
    table.map_or(0, |table| table.rows)
}

fn member(cluster: &Cluster, id: u64) -> RestoredMember {
    let config = cluster.config(id);
    RestoredMember {
        node_id: id,
        peer_address: config.peer_listen.to_string(),
        client_address: config.client_address,
    }
}

#[tokio::test]
async fn a_backup_of_a_follower_becomes_a_cluster_that_continues_from_there_and_grows() {
    let old = Cluster::started(3, Tuning::default()).await;
    write(old.node(1), 0..40).await;
    let follower = old.follower().await;
    let bytes = taken(old.node(follower)).await;
    let summary = checked(&bytes).unwrap();
    assert_eq!(rows(&summary, "Actions"), 40, "all that was acknowledged");
    assert_eq!(summary.members, [1, 2, 3]);
    assert_eq!(summary.header.origin, BackupOrigin::Serving);
    assert_eq!(summary.file_bytes, bytes.len() as u64);
    write(old.node(1), 40..50).await;

    let mut new = Cluster::new(1, Tuning::default());
    let directory = new.data_directory(1);
    let mut seen = 0;
    let restored = restore(bytes.as_slice(), &directory, member(&new, 1), |read| {
        seen = read
    });
    let (held, cluster_id) = restored.unwrap();
    assert_eq!((&held, seen > 0), (&summary, true));
    let again = checked(&rescued(&directory).unwrap()).unwrap().header;
    assert_eq!(
        (again.index, again.digest),
        (held.header.index, held.header.digest)
    );
    assert_eq!(again.cluster_id, cluster_id);
    assert_ne!(cluster_id, held.header.cluster_id);

    new.start(1).await;
    new.leader().await;
    assert_eq!(
        submit(new.node(1), register("action-7")).await.unwrap(),
        Ok(UNCHANGED)
    );
    write(new.node(1), 40..45).await;
    // These ids belonged to members of the old cluster.
    new.grow(1, 2).await;
    new.grow(1, 3).await;
    let (index, _) = new.agreed().await;
    assert!(index > held.header.index + 5);
    let status = new.node(2).status().await;
    assert_eq!(status.cluster_id, Some(cluster_id));
    new.stop(1).await;
    new.start(1).await;
    assert_eq!(
        submit(new.node(1), register("action-44")).await.unwrap(),
        Ok(UNCHANGED)
    );
    new.agreed().await;
}

#[tokio::test]
async fn any_altered_missing_or_added_byte_of_a_backup_is_found() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    write(cluster.node(1), 0..3).await;
    let good = taken(cluster.node(1)).await;
    checked(&good).unwrap();
    for position in 0..good.len() {
        for bit in [0x01, 0x80] {
            let mut bad = good.clone();
            bad[position] ^= bit;
            assert!(checked(&bad).is_err(), "bit {bit:02x} of byte {position}");
        }
        let cut = checked(&good[..position]);
        let is_cut = matches!(cut, Err(BackupFault::CutShort(_) | BackupFault::Foreign));
        assert!(is_cut, "cut at {position}: {cut:?}");
    }
    let longer = [good.as_slice(), b"\0"].concat();
    assert!(matches!(checked(&longer), Err(BackupFault::Trailing(_))));
    for foreign in [&b""[..], b"PK\x03\x04", b"flotilla-backup", &[0; 4_096]] {
        assert!(matches!(checked(foreign), Err(BackupFault::Foreign)));
    }
    let newer = [b"flotilla-backup\n".as_slice(), &[9]].concat();
    assert!(matches!(
        checked(&newer),
        Err(BackupFault::FormatUnknown(9))
    ));
}

/// The blocks of a backup, after its first 17 bytes.
fn blocks(backup: &[u8]) -> Vec<&[u8]> {
    let mut rest = &backup[17..];
    let mut blocks = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[1..5].try_into().expect("four bytes"));
        let (block, after) =
            rest.split_at(9 + usize::try_from(length).expect("a block fits into memory"));
        blocks.push(block);
        rest = after;
    }
    blocks
}

#[tokio::test]
async fn whole_blocks_that_are_missing_repeated_or_out_of_order_are_found() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let large = (0..700).map(|number| {
        let mut command = register(&format!("action-{number}"));
        if let Body::RegisterAction(action) = &mut command.body {
            action.description = Some("x".repeat(4_000));
        }
        submit(cluster.node(1), command)
    });
    for submitted in join_all(large).await {
        assert_eq!(submitted.unwrap(), Ok(REGISTERED));
    }
    let good = taken(cluster.node(1)).await;
    let blocks = blocks(&good);
    assert!(blocks.len() > 4, "a header, several of rows, an end");
    let put_together = |blocks: &[&[u8]]| checked(&[&good[..17], &blocks.concat()].concat());
    put_together(&blocks).unwrap();
    for position in 0..blocks.len() {
        let mut missing = blocks.clone();
        missing.remove(position);
        assert!(put_together(&missing).is_err(), "without {position}");
        let mut repeated = blocks.clone();
        repeated.insert(position, blocks[position]);
        assert!(put_together(&repeated).is_err(), "twice {position}");
        let mut swapped = blocks.clone();
        swapped.swap(position, (position + 1) % blocks.len());
        assert!(put_together(&swapped).is_err(), "swapped {position}");
    }
}

#[tokio::test]
async fn a_restore_that_fails_leaves_nothing_and_one_that_was_cut_off_does_not_start() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    write(cluster.node(1), 0..3).await;
    let good = taken(cluster.node(1)).await;
    let mut new = Cluster::new(1, Tuning::default());
    let directory = new.data_directory(1);
    let attempt = |bytes: &[u8]| restore(bytes, &directory, member(&new, 1), |_| {});
    for bad in [&good[..good.len() - 1], &good[..good.len() / 2], b"foreign"] {
        assert!(matches!(attempt(bad), Err(RestoreError::Backup(_))));
        assert!(!directory.exists());
    }
    fs::create_dir_all(&directory).unwrap();
    assert!(attempt(&good[..good.len() - 1]).is_err());
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    fs::write(directory.join("notes"), "mine").unwrap();
    assert!(matches!(attempt(&good), Err(RestoreError::NotEmpty(_))));
    fs::remove_file(directory.join("notes")).unwrap();
    attempt(&good).unwrap();
    assert!(matches!(attempt(&good), Err(RestoreError::NotEmpty(_))));

    fs::write(directory.join("RESTORING"), "").unwrap();
    let config = new.taken_config(1);
    let Err(refused) = Replica::start(config, Environment::default()).await else {
        panic!("a directory that is half restored is refused")
    };
    let half = StorageError::HalfRestored.to_string();
    assert!(matches!(&refused, StartError::Storage { error, .. } if error.to_string() == half));
    assert!(refused.hint().contains("restore the backup again"));
}

#[tokio::test]
async fn the_directory_of_a_node_that_is_left_over_becomes_a_cluster_with_all_of_its_log() {
    let mut old = Cluster::started(3, Tuning::default()).await;
    write(old.node(1), 0..30).await;
    let left = old.follower().await;
    let directory = old.data_directory(left);
    assert!(matches!(rescued(&directory), Err(OfflineError::InUse(_))));
    let (index, digest) = old.agreed().await;
    // Killed: what it applied last is not flushed, but its log has it.
    for id in old.ids() {
        old.kill(id);
    }
    let bytes = rescued(&directory).unwrap();
    let summary = checked(&bytes).unwrap();
    assert_eq!(summary.header.origin, BackupOrigin::Directory);
    assert_eq!(
        (summary.header.node_id, rows(&summary, "Actions")),
        (left, 30)
    );
    assert!(summary.header.index >= index);
    if summary.header.index == index {
        assert_eq!(summary.header.digest, digest);
    }
    // The directory is unchanged: its node can return to the others.
    assert_eq!(rescued(&directory).unwrap().len(), bytes.len());
    for id in 1..=3 {
        old.start(id).await;
    }
    old.agreed().await;

    let mut new = Cluster::new(1, Tuning::default());
    let place = new.data_directory(1);
    restore(bytes.as_slice(), &place, member(&new, 1), |_| {}).unwrap();
    new.start(1).await;
    new.leader().await;
    assert_eq!(
        submit(new.node(1), register("action-29")).await.unwrap(),
        Ok(UNCHANGED)
    );
}

/// Everything below a directory, with the times of its files.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Option<(Vec<u8>, SystemTime)>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(contents(&path));
            found.insert(path, None);
        } else {
            let metadata = fs::metadata(&path).expect("a file");
            let changed_at = metadata.modified().expect("a time");
            let bytes = fs::read(&path).expect("a file");
            found.insert(path, Some((bytes, changed_at)));
        }
    }
    found
}

#[tokio::test]
async fn a_backup_of_a_directory_leaves_it_byte_for_byte_as_it_was() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    write(cluster.node(1), 0..30).await;
    drop(taken(cluster.node(1)).await);
    write(cluster.node(1), 30..40).await;
    let folder = tempfile::tempdir().unwrap();
    let killed = folder.path().join("killed");
    copy_as_killed(&cluster.data_directory(1), &killed);
    // A snapshot that the node would delete when it starts, and a generation that it would not keep.
    fs::remove_dir_all(killed.join("snapshots")).unwrap();
    fs::create_dir_all(killed.join("snapshots/0000000009")).unwrap();
    fs::create_dir_all(killed.join("state/0000000009")).unwrap();
    let before = contents(&killed);
    let bytes = rescued(&killed).unwrap();
    assert_eq!(rows(&checked(&bytes).unwrap(), "Actions"), 40);
    let after = contents(&killed);
    assert!(before == after, "{:?}", after.keys());

    fs::remove_file(killed.join("state/CURRENT")).unwrap();
    let before = contents(&killed);
    let refused = rescued(&killed);
    assert!(
        matches!(refused, Err(OfflineError::Unreadable { .. })),
        "{refused:?}"
    );
    assert!(before == contents(&killed));
}

#[tokio::test]
async fn a_directory_whose_state_is_incomplete_is_refused_with_what_to_do_and_kept() {
    let mut cluster = Cluster::started(1, Tuning::default()).await;
    write(cluster.node(1), 0..3).await;
    cluster.stop(1).await;
    let current = cluster.data_directory(1).join("state/CURRENT");
    let bytes = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    let Err(refused) = Replica::start(cluster.config(1), Environment::default()).await else {
        panic!("it is not known which generation is in use")
    };
    let error = match &refused {
        StartError::Storage { error, .. } => error,
        other => panic!("{other}"),
    };
    assert!(matches!(error, StorageError::Incomplete(_)), "{error}");
    assert!(refused.hint().starts_with("nothing was deleted"));
    fs::write(&current, bytes).unwrap();
    cluster.start(1).await;
    cluster.leader().await;
    let again = submit(cluster.node(1), register("action-2")).await;
    assert_eq!(again.unwrap(), Ok(UNCHANGED));
}

#[tokio::test]
async fn only_the_data_directory_of_a_member_is_backed_up() {
    let folder = tempfile::tempdir().unwrap();
    let none = folder.path().join("none");
    assert!(matches!(
        rescued(&none),
        Err(OfflineError::NotADataDirectory(_))
    ));
    assert!(!none.exists());
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    let refused = rescued(&file);
    assert!(
        matches!(refused, Err(OfflineError::NotADataDirectory(_))),
        "{refused:?}"
    );
    // A directory that cannot be read may well be one.
    let unreadable = folder.path().join("x".repeat(300));
    let refused = rescued(&unreadable);
    assert!(
        matches!(refused, Err(OfflineError::Unreadable { .. })),
        "{refused:?}"
    );
    let mut cluster = Cluster::new(2, Tuning::default());
    // It waits for the other one, so there is no cluster yet.
    cluster.start(1).await;
    cluster.stop(1).await;
    let refused = rescued(&cluster.data_directory(1));
    assert!(
        matches!(refused, Err(OfflineError::NoCluster(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_directory_whose_state_ends_before_its_log_begins_is_not_backed_up() {
    let mut cluster = Cluster::started(1, Tuning::default()).await;
    write(cluster.node(1), 0..3).await;
    cluster.stop(1).await;
    let directory = cluster.data_directory(1);
    rescued(&directory).unwrap();
    let log = RocksStorage.open_log(&directory).unwrap();
    // As after a restart with an old copy of the state.
    let purged = Operation::Set {
        fact: Fact::Purged,
        bytes: vec![1, 0, 9, 200],
    };
    let operations = [Operation::Purge { to: 200 }, purged];
    log.write(&operations, Durability::Synced).unwrap();
    drop(log);
    let refused = rescued(&directory).unwrap_err();
    let says = refused.to_string();
    assert!(says.contains("the log begins after 200"), "{says}");
}

#[tokio::test]
async fn a_state_that_an_entry_of_the_rest_of_its_log_proves_wrong_is_not_backed_up() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    write(cluster.node(1), 0..10).await;
    cluster.agreed().await;
    for id in 1..=3 {
        cluster.stop(id).await;
    }
    let directory = cluster.data_directory(3);
    rescued(&directory).unwrap();
    let log = RocksStorage.open_log(&directory).unwrap();
    let (term, last) = last_of(log.as_ref());
    let report = |node, digest| Payload::DigestReport {
        node,
        index: 8,
        digest,
    };
    let reports = [report(3, 6), report(1, 5), report(2, 5)];
    let operations: Vec<Operation> = (last + 1..)
        .zip(reports)
        .map(|(index, report)| Operation::Put {
            index,
            record: record(term, index, report),
        })
        .collect();
    log.write(&operations[..2], Durability::Synced).unwrap();
    drop(log);
    rescued(&directory).expect("two of three reports prove nothing");
    let log = RocksStorage.open_log(&directory).unwrap();
    log.write(&operations[2..], Durability::Synced).unwrap();
    drop(log);
    let refused = rescued(&directory);
    assert!(
        matches!(refused, Err(OfflineError::Diverged(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_backup_is_restored_to_a_file_system_of_its_own() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    write(cluster.node(1), 0..3).await;
    let good = taken(cluster.node(1)).await;
    let mut new = Cluster::new(1, Tuning::default());
    let directory = new.data_directory(1);
    let own = directory.join("lost+found");
    fs::create_dir_all(&own).unwrap();
    let attempt = |bytes: &[u8]| restore(bytes, &directory, member(&new, 1), |_| {});
    assert!(attempt(&good[..good.len() - 1]).is_err());
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    attempt(&good).unwrap();
    assert!(own.is_dir());
    new.start(1).await;
    new.leader().await;
    let again = submit(new.node(1), register("action-2")).await;
    assert_eq!(again.unwrap(), Ok(UNCHANGED));
}

#[tokio::test]
async fn a_node_gives_a_bounded_number_of_backups_at_once() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let node = cluster.node(1);
    let deadline = || Instant::now() + LONG;
    let first = node.backup(deadline()).await.unwrap();
    let _second = node.backup(deadline()).await.unwrap();
    let third = node.backup(deadline()).await;
    assert!(matches!(third, Err(BackupError::UnderWay)));
    drop(first);
    assert!(node.backup(deadline()).await.is_ok());
}

#[tokio::test]
async fn any_node_has_any_other_make_a_snapshot() {
    let cluster = Cluster::started(3, Tuning::default()).await;
    write(cluster.node(1), 0..10).await;
    let (applied, _) = cluster.agreed().await;
    for id in 1..=3 {
        let deadline = Instant::now() + LONG;
        let covered = cluster
            .node(1)
            .snapshot(NodeId(id), deadline)
            .await
            .unwrap();
        assert!(covered >= applied, "{covered} of {applied}");
    }
    let status = cluster.node(1).status().await;
    assert!(
        status
            .nodes
            .iter()
            .all(|node| node.snapshot_index >= applied)
    );
    let unknown = cluster.node(1).snapshot(NodeId(9), Instant::now() + LONG);
    assert!(matches!(unknown.await, Err(BackupError::NodeNotMember(_))));
}
