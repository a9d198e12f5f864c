//! A follower that missed what the log no longer has.

use crate::files::fixture;
use flotilla_tests::{Cluster, PATIENCE, wait_until};
use serde_json::json;

/// So small that a few runs are too much for the log.
const FLAGS: [&str; 2] = ["--snapshot-log-bytes=65536", "--log-bytes-max=262144"];
/// The size of each run's input. In bytes.
const INPUT_BYTES: usize = 32 << 10;

#[test]
fn a_follower_that_missed_a_purge_catches_up_by_snapshot_and_then_leads() {
    let mut cluster = Cluster::of(&[1, 2, 3], &FLAGS);
    let flo = cluster.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let first = flo.text(&["workflow", "start", "parked", r#"{"first":true}"#]);
    let laggard = cluster.followers()[0];
    let missing_from = cluster.agreement().index;
    cluster.kill(laggard);

    // Until the leader no longer has in its log what the laggard needs.
    let input = json!({"text": "x".repeat(INPUT_BYTES)}).to_string();
    let file = format!("@{}", cluster.scratch().write("input.json", input));
    for _ in 0..24 {
        let _ = flo.text(&["workflow", "start", "parked", &file]);
    }
    let leader = cluster.leader();
    let snapshot = wait_until("a snapshot of what the laggard misses", PATIENCE, || {
        let status = cluster.node(leader).status()?;
        let snapshot = status.node(leader).snapshot_index;
        match snapshot.filter(|&index| index > missing_from + 8) {
            Some(index) => Ok(index),
            None => Err(format!("the leader says {status:?}")),
        }
    });

    cluster.restart(laggard);
    wait_until("the laggard to have the snapshot", PATIENCE, || {
        let status = cluster.node(laggard).status()?;
        let own = status.node(laggard);
        match own.snapshot_index >= Some(snapshot) && own.applied_index >= snapshot {
            true => Ok(()),
            false => Err(format!("it says {own:?}")),
        }
    });
    cluster.await_health();
    let _ = cluster.agreement();

    // Only a node that has everything may lead, so the others are stopped in turn until it does.
    while cluster.leader() != laggard {
        let leader = cluster.leader();
        cluster.kill(leader);
        let _ = cluster.leader();
        cluster.restart(leader);
        cluster.await_health();
    }
    let at_laggard = cluster.flo_at(laggard);
    let run = at_laggard.json(&["workflow", "status", &first]);
    assert_eq!(run["input"], json!({"first": true}), "{run}");
    let _ = at_laggard.text(&["workflow", "signal", &first, "--type", "go"]);
    let _ = at_laggard.text(&["workflow", "history", &first, "--follow"]);
    let runs = at_laggard.json(&["workflow", "runs", "--workflow", "parked"]);
    assert_eq!(runs["items"].as_array().map(Vec::len), Some(25), "{runs}");
    let _ = cluster.agreement();
}
