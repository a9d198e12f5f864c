//! Data directories that do not belong to the node, or are damaged.

use crate::files::fixture;
use flotilla_tests::{Cluster, Host, Node, TIMEOUT, wait_until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Expects the node to end with a failure, and to print these texts.
fn expect_refused(node: &mut Node, says: &[&str]) {
    let (status, output) = node.end();
    assert!(!status.success(), "expected a refusal, but: {output}");
    for text in says {
        assert!(output.contains(text), "expected {text:?} in: {output}");
    }
}

#[test]
fn a_data_directory_of_another_cluster_is_refused() {
    let mut cluster = Cluster::start();
    let mut other = Cluster::of(&[3], &[]);
    other.node_mut(3).stop();
    cluster.node_mut(3).stop();
    let data_dir = cluster.node(3).data_dir().to_owned();
    let own = data_dir.with_extension("own");
    fs::rename(&data_dir, &own).expect("a folder of this test");
    fs::rename(other.node(3).data_dir(), &data_dir).expect("a folder of this test");
    cluster.restart(3);
    expect_refused(cluster.node_mut(3), &["cluster", "hint: "]);

    // With its own directory, the node is a member as before.
    fs::remove_dir_all(&data_dir).expect("a folder of this test");
    fs::rename(&own, &data_dir).expect("a folder of this test");
    cluster.restart(3);
    cluster.await_health();
}

#[test]
fn a_wiped_member_is_refused_with_the_hint_to_join() {
    let mut cluster = Cluster::start();
    let follower = cluster.followers()[0];
    cluster.kill(follower);
    let data_dir = cluster.node(follower).data_dir().to_owned();
    fs::remove_dir_all(&data_dir).expect("a folder of this test");
    cluster.restart(follower);
    expect_refused(cluster.node_mut(follower), &["--join"]);
    let flo = cluster.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
}

#[test]
fn members_that_have_all_lost_their_data_wait_for_the_operator() {
    let mut cluster = Cluster::start();
    let before = cluster.flo().json(&["cluster", "form"]);
    assert_eq!(before["changed"], false);
    for id in cluster.ids() {
        cluster.kill(id);
        fs::remove_dir_all(cluster.node(id).data_dir()).expect("a folder of this test");
    }
    for id in cluster.ids() {
        cluster.restart(id);
    }
    let flo = cluster.flo_at(2);
    wait_until("the node to see that all are empty", TIMEOUT, || {
        let answer = flo.run(&["cluster", "status"]);
        let is_said = answer.show().contains("none belongs to a cluster");
        if is_said && answer.code == 4 {
            return Ok(());
        }
        Err(answer.show())
    });
    flo.refused(&["--timeout", "2s", "kv", "set", "key", "1"])
        .expect(4, "node_not_member")
        .hints("flo cluster status");
    let formed = flo.json(&["cluster", "form"]);
    assert_eq!(formed["changed"], true);
    assert_ne!(formed["cluster_id"], before["cluster_id"]);
    cluster.await_health();
}

#[test]
fn a_corrupt_log_record_is_refused_at_start() {
    const MARK: &str = "a-payload-that-is-easy-to-find";
    let mut cluster = Cluster::of(&[1], &[]);
    let flo = cluster.flo();
    let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let input = format!("\"{MARK}\"");
    let run_id = flo.text(&["workflow", "start", "parked", &input]);
    for number in 0..20 {
        let _ = flo.text(&["workflow", "start", "parked", &number.to_string()]);
    }
    cluster.kill(1);
    let log = cluster.node(1).data_dir().join("log");
    let places = replace(&log, MARK, "a-payload-that-is-HARD-to-find");
    assert!(
        !places.is_empty(),
        "expected the input in {}",
        log.display()
    );
    cluster.restart(1);
    expect_refused(cluster.node_mut(1), &["corrupt", "hint: "]);

    // With the original bytes the node starts: the refusal has changed nothing.
    replace(&log, "a-payload-that-is-HARD-to-find", MARK);
    cluster.restart(1);
    let run = cluster
        .flo()
        .json(&["--timeout", "30s", "workflow", "status", &run_id]);
    assert_eq!(run["input"], MARK, "{run}");
}

/// Overwrites a text in every file of the folder that contains it, and returns the names of those files.
fn replace(folder: &Path, from: &str, to: &str) -> Vec<PathBuf> {
    assert_eq!(from.len(), to.len(), "nothing moves");
    let mut changed = Vec::new();
    for entry in fs::read_dir(folder).expect("the log has a folder") {
        let path = entry.expect("an entry of a folder").path();
        let Ok(mut content) = fs::read(&path) else {
            continue;
        };
        let places: Vec<usize> = content
            .windows(from.len())
            .enumerate()
            .filter(|(_, window)| *window == from.as_bytes())
            .map(|(place, _)| place)
            .collect();
        for &place in &places {
            content[place..place + to.len()].copy_from_slice(to.as_bytes());
        }
        if !places.is_empty() {
            fs::write(&path, content).expect("a file of this test");
            changed.push(path);
        }
    }
    changed
}

#[test]
fn a_copy_of_a_data_directory_does_not_run_beside_the_original() {
    let mut cluster = Cluster::start();
    cluster.node_mut(1).stop();
    let data_dir = cluster.node(1).data_dir().to_owned();
    let copy = data_dir.with_extension("copy");
    let copied = Command::new("cp")
        .arg("-r")
        .args([&data_dir, &copy])
        .status();
    assert!(copied.is_ok_and(|copied| copied.success()));
    cluster.restart(1);
    cluster.await_health();

    let host = Host::local(1);
    let address = |offset: u16| format!("{}:{}", host.ip, host.port + offset);
    let (listen, peer_listen, http_listen) = (address(0), address(1), address(2));
    let copy = copy.to_string_lossy();
    let twin = [
        "server",
        "--data-dir",
        &copy,
        "--listen",
        &listen,
        "--peer-listen",
        &peer_listen,
        "--http-listen",
        &http_listen,
    ];
    cluster
        .flo()
        .refused(&twin)
        .expect(3, "server_start_failed")
        .says("no other process of node 1")
        .hints("copied data directory");
    cluster.await_health();
}
