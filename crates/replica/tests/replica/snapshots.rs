//! Snapshots, purges, and a member that is behind the log.

use crate::cluster::{Cluster, LONG, REGISTERED, UNCHANGED, register, submit};
use crate::records::{Payload, last_of, record};
use flotilla_replica::{Durability, Operation, RocksStorage, Storage, Tuning, backup_directory};
use std::time::Duration;

/// Snapshots and purges after little data, so that a short test has many.
pub(crate) fn eager() -> Tuning {
    Tuning {
        snapshot_log_bytes: 64 << 10,
        max_log_bytes: 256 << 10,
        digest_interval: 16,
        upkeep_interval: Duration::from_millis(20),
        ..Tuning::default()
    }
}

/// Writes commands of 4,000 bytes.
pub(crate) async fn write(cluster: &Cluster, node: u64, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let command = register(&format!("action-{number}"));
        let mut command = command;
        if let flotilla_engine::Body::RegisterAction(action) = &mut command.body {
            action.description = Some("x".repeat(4_000));
        }
        submit(cluster.node(node), command)
            .await
            .expect("a leader")
            .expect("a legal command");
    }
}

#[tokio::test]
async fn a_follower_that_was_down_while_the_log_was_purged_catches_up_by_snapshot_and_then_leads() {
    let mut cluster = Cluster::started(3, eager()).await;
    write(&cluster, 1, 0..20).await;
    let absent = cluster.follower().await;
    cluster.stop(absent).await;
    let leader = cluster.leader().await;
    write(&cluster, leader, 20..400).await;
    let status = cluster.node(leader).status().await;
    let leading = status
        .nodes
        .iter()
        .find(|node| node.node_id.0 == leader)
        .unwrap();
    assert!(leading.snapshot_index > 20, "{leading:?}");
    cluster.start(absent).await;
    let (applied, _) = cluster.agreed().await;
    let replayed = cluster.node(absent).counters().entries_applied;
    assert!(
        replayed < applied - 100,
        "{replayed} of {applied} entries came by the log"
    );
    let leader = cluster.leader().await;
    cluster.transfer(leader, absent).await.unwrap();
    let mut leadership = cluster.node(absent).leadership();
    let leads = leadership.wait_for(|leadership| leadership.is_ready);
    tokio::time::timeout(LONG, leads)
        .await
        .expect("in time")
        .unwrap();
    let again = submit(cluster.node(absent), register("action-3"))
        .await
        .unwrap();
    assert!(again.is_ok());
    write(&cluster, absent, 400..420).await;
    cluster.agreed().await;
}

#[tokio::test]
async fn a_cluster_that_purges_all_the_time_restarts_from_its_snapshots() {
    let mut cluster = Cluster::started(3, eager()).await;
    write(&cluster, 2, 0..200).await;
    let (_, _) = cluster.agreed().await;
    for id in cluster.ids() {
        cluster.stop(id).await;
    }
    for id in 1..=3 {
        cluster.start(id).await;
    }
    let mut command = register("action-150");
    if let flotilla_engine::Body::RegisterAction(action) = &mut command.body {
        action.description = Some("x".repeat(4_000));
    }
    assert_eq!(
        submit(cluster.node(1), command).await.unwrap(),
        Ok(UNCHANGED)
    );
    write(&cluster, 3, 200..260).await;
    cluster.agreed().await;
}

/// A received state is installed first; then a log that does not continue it is cut off.
#[tokio::test]
async fn a_node_that_crashed_between_the_state_and_the_log_of_a_snapshot_starts_again() {
    let mut cluster = Cluster::started(1, Tuning::default()).await;
    cluster.stop(1).await;
    cluster.start(1).await;
    cluster.leader().await;
    let written = submit(cluster.node(1), register("pack")).await;
    assert_eq!(written.unwrap(), Ok(REGISTERED));
    let (applied, _) = cluster.agreed().await;
    cluster.stop(1).await;
    let log = RocksStorage
        .open_log(&cluster.data_directory(1))
        .expect("a log");
    let (term, last) = last_of(log.as_ref());
    assert!(term > 1, "the log has an older term");
    // What it holds then is longer than the state, and of a term in which it was never committed.
    let from = last - 1;
    let stale = (from..last + 5).map(|index| Operation::Put {
        index,
        record: record(term - 1, index, Payload::Blank),
    });
    let operations: Vec<Operation> = [Operation::Truncate { from }]
        .into_iter()
        .chain(stale)
        .collect();
    log.write(&operations, Durability::Synced).unwrap();
    drop(log);

    // A backup does not take it for the rest of the log either.
    let directory = cluster.data_directory(1);
    let header = backup_directory(&directory, "test".to_owned(), &mut |_| Ok(()));
    assert_eq!(header.unwrap().index, last);
    cluster.start(1).await;
    cluster.leader().await;
    let again = submit(cluster.node(1), register("pack")).await;
    assert_eq!(again.unwrap(), Ok(UNCHANGED));
    assert!(cluster.agreed().await.0 > applied);
    // Nothing of it is left for the start after that.
    cluster.stop(1).await;
    cluster.start(1).await;
    cluster.leader().await;
}

/// openraft's issue 2116: a purge that overtakes a queued apply makes its core panic. Small logs,
/// eager snapshots and a follower that comes and goes are said to provoke it.
#[tokio::test]
async fn purges_and_installs_under_load_never_end_a_replica() {
    let mut cluster = Cluster::started(3, eager()).await;
    for round in 0..4 {
        let leader = cluster.leader().await;
        let absent = cluster.follower().await;
        cluster.stop(absent).await;
        write(&cluster, leader, round * 200..round * 200 + 150).await;
        cluster.start(absent).await;
        write(&cluster, leader, round * 200 + 150..round * 200 + 200).await;
        for id in cluster.ids() {
            assert!(cluster.node(id).fatal().borrow().is_none());
        }
    }
    cluster.agreed().await;
}
