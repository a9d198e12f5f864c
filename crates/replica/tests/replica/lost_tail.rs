//! Disks that lose what they have reported as durable.

use crate::cluster::{Cluster, LONG, copy_as_killed, register, submit_surely};
use crate::records::last_of;
use flotilla_engine::NodeId;
use flotilla_replica::{
    Durability, Environment, Fact, FatalError, Operation, Replica, RocksStorage, StartError,
    Storage, Tuning,
};
use std::fs;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Waits until the leader knows that a member has all of the log; returns its last entry.
async fn acknowledged(leader: &Replica, member: u64) -> u64 {
    loop {
        let gauges = leader.gauges();
        let matched = gauges
            .followers
            .iter()
            .find(|follower| follower.node_id == NodeId(member));
        if matched.is_some_and(|follower| follower.matched_index == gauges.last_log_index) {
            return gauges.last_log_index;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

async fn refused_start(cluster: &Cluster, id: u64) -> StartError {
    let started = Replica::start(cluster.config(id), Environment::default()).await;
    started.err().expect("it must not vote")
}

/// What it had acknowledged, and what is left.
fn lost(error: &StartError) -> (u64, u64) {
    match error {
        StartError::TailLost { acknowledged, last } => (*acknowledged, *last),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_member_that_lost_the_end_of_its_log_ends_and_cannot_return() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let (leader, victim) = (cluster.leader().await, cluster.follower().await);
    for number in 0..20 {
        let command = register(&format!("action-{number}"));
        submit_surely(cluster.node(leader), command).await.unwrap();
    }
    cluster.agreed().await;
    let all = timeout(LONG, acknowledged(cluster.node(leader), victim)).await;
    let all = all.expect("in time");
    // Its state ends before its log, as after a power cut.
    let folder = tempfile::tempdir().unwrap();
    let directory = cluster.data_directory(victim);
    copy_as_killed(&directory, folder.path());
    cluster.kill(victim);
    fs::remove_dir_all(&directory).unwrap();
    copy_as_killed(folder.path(), &directory);
    let log = RocksStorage.open_log(&directory).unwrap();
    let (term, last) = last_of(log.as_ref());
    assert_eq!(last, all);
    let lose = Operation::Truncate { from: last - 4 };
    log.write(&[lose], Durability::Synced).unwrap();
    drop(log);
    let refused = refused_start(&cluster, victim).await;
    let (acknowledged, left) = lost(&refused);
    assert!(acknowledged > left, "it knows what was committed");

    // As if it had lost that, too.
    let log = RocksStorage.open_log(&directory).unwrap();
    let number = |number: u64| u8::try_from(number).expect("a small number");
    let committed = Operation::Set {
        fact: Fact::Committed,
        bytes: vec![1, 0, number(term), number(last - 5)],
    };
    log.write(&[committed], Durability::Synced).unwrap();
    drop(log);
    cluster.start(victim).await;
    let mut fatal = cluster.node(victim).fatal();
    let ended = timeout(LONG, fatal.wait_for(Option::is_some)).await;
    let ended = ended.expect("in time").expect("a running node").clone();
    match ended.as_deref() {
        Some(FatalError::Refused(error)) => assert_eq!(lost(error), (all, last - 5)),
        other => panic!("{other:?}"),
    }
    cluster.stop(victim).await;
    let refused = refused_start(&cluster, victim).await;
    assert_eq!(lost(&refused), (all, last - 5));
    assert!(refused.hint().contains("flo cluster remove"));
    // The leader has survived that, and the others serve.
    let command = register("afterwards");
    submit_surely(cluster.node(leader), command).await.unwrap();
    assert_eq!(cluster.leader().await, leader);
}
