//! Snapshots, purges, and a member that the log no longer reaches.

use crate::cluster::{Cluster, LONG, UNCHANGED, register, submit};
use flotilla_replica::Tuning;
use std::time::Duration;

/// Snapshots and purges after little, so that a short test sees many.
fn eager() -> Tuning {
    Tuning {
        snapshot_log_bytes: 64 << 10,
        log_bytes_max: 256 << 10,
        digest_interval: 16,
        upkeep_interval: Duration::from_millis(20),
        ..Tuning::default()
    }
}

async fn write(cluster: &Cluster, node: u64, numbers: std::ops::Range<u32>) {
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

/// openraft's issue 2116: a purge that overtakes a queued apply makes its core panic. Small logs,
/// eager snapshots and a follower that comes and goes are what is said to provoke it.
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
