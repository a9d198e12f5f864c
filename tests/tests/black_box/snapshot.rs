//! A follower that lacks entries purged from the log.

use crate::files::fixture;
use flotilla_tests::{Cluster, TIMEOUT, wait_until};
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;

/// So small that a few runs exceed the log's limit, even while a member still needs the log.
const FLAGS: [&str; 2] = ["--snapshot-log-bytes=65536", "--max-log-bytes=262144"];
/// The size of each run's input. In bytes.
const INPUT_BYTES: usize = 32 << 10;

#[test]
fn a_follower_that_missed_a_purge_catches_up_by_snapshot_and_then_leads() {
    let mut cluster = Cluster::of(&[1, 2, 3], &FLAGS);
    let flo = cluster.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let first = flo.text(&["workflow", "start", "parked", r#"{"first":true}"#]);
    let laggard = cluster.followers()[0];
    cluster.kill(laggard);
    let before = states(&cluster, laggard);

    let runs = outgrow_log(&cluster);
    let snapshot = snapshot_index(&cluster, cluster.leader());
    cluster.restart(laggard);
    wait_until("the laggard to catch up", TIMEOUT, || {
        let status = cluster.node(laggard).status()?;
        let own = status.node(laggard);
        match Some(own.applied_index) >= snapshot {
            true => Ok(()),
            false => Err(format!("it says {own:?}")),
        }
    });
    assert_ne!(states(&cluster, laggard), before, "the log was replayed");
    cluster.await_health();
    let _ = cluster.agreement();

    make_leader(&mut cluster, laggard);
    let flo = cluster.flo_at(laggard);
    let run = flo.json(&["workflow", "status", &first]);
    assert_eq!(run["input"], json!({"first": true}), "{run}");
    let _ = flo.text(&["workflow", "signal", &first, "--type", "go"]);
    let _ = flo.text(&["workflow", "history", &first, "--follow"]);
    let rows = flo.json(&["workflow", "runs", "--limit", "1000"]);
    assert_eq!(rows["items"].as_array().map(Vec::len), Some(1 + runs));
    let _ = cluster.agreement();
}

/// Starts runs until the leader has purged the entries of its log, and returns how many.
///
/// A snapshot and the purge behind it are steps of one round of upkeep, so the third new
/// snapshot comes after a purge behind the first. But consensus skips a purge while it tries to send
/// the same entries to the absent member: twice as many rounds are sure to purge.
fn outgrow_log(cluster: &Cluster) -> usize {
    let input = json!({"text": "x".repeat(INPUT_BYTES)}).to_string();
    let file = format!("@{}", cluster.scratch().write("input.json", input));
    let flo = cluster.flo();
    let mut runs = 0;
    let mut start = || {
        let _ = flo.text(&["workflow", "start", "parked", &file]);
        runs += 1;
    };
    for _ in 0..16 {
        start();
    }
    let leader = cluster.leader();
    let mut snapshots = BTreeSet::from([snapshot_index(cluster, leader)]);
    wait_until("six new snapshots", TIMEOUT, || {
        start();
        snapshots.insert(snapshot_index(cluster, leader));
        match snapshots.len() > 6 {
            true => Ok(()),
            false => Err(format!("there are {snapshots:?}")),
        }
    });
    runs
}

/// Kills the leader until this node leads.
fn make_leader(cluster: &mut Cluster, node: u64) {
    wait_until("the laggard to lead", TIMEOUT, || {
        let leader = cluster.leader();
        if leader == node {
            return Ok(());
        }
        cluster.kill(leader);
        let _ = cluster.leader();
        cluster.restart(leader);
        cluster.await_health();
        Err(format!("node {leader} led"))
    });
}

fn snapshot_index(cluster: &Cluster, id: u64) -> Option<u64> {
    let status = cluster.node(id).status().expect("a node that runs");
    status.node(id).snapshot_index
}

/// The folders of a node's state: an installed one has another name than its predecessor.
fn states(cluster: &Cluster, id: u64) -> BTreeSet<OsString> {
    let folder = cluster.node(id).data_dir().join("state");
    let entries = folder.read_dir().expect("a node has a state");
    let paths = entries.map(|entry| entry.expect("an entry of a folder").path());
    let folders = paths.filter(|path| path.is_dir());
    folders
        .filter_map(|path| path.file_name().map(OsString::from))
        .collect()
}
