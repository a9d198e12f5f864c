//! Membership changes with the operator's commands.

use flotilla_tests::{Cluster, Flo, Host};
use serde_json::json;

/// The output of a command, without the final line break.
fn said(flo: &Flo, line: &[&str]) -> String {
    flo.text(line).trim_end().to_owned()
}

#[test]
fn a_cluster_grows_from_one_node_to_three_and_shrinks_again_while_runs_continue() {
    let mut cluster = Cluster::of(&[1], &[]);
    let first = cluster.flo();
    drop(first.text(&["kv", "set", "before", "1"]));
    for id in [2, 3] {
        cluster.grow(&Host::local(id));
    }
    let flo = cluster.flo();
    assert_eq!(
        said(&flo, &["cluster", "transfer-leader", "3"]),
        "node 3 is now the leader"
    );
    assert_eq!(
        said(&flo, &["cluster", "transfer-leader", "3"]),
        "node 3 is already the leader"
    );
    assert_eq!(
        said(&flo, &["cluster", "promote", "2"]),
        "node 2 is already a voter"
    );
    let moved = flo.json(&["cluster", "transfer-leader", "2"]);
    assert_eq!(moved, json!({"leader_id": 2, "changed": true}));
    // Two of three are a majority now.
    cluster.kill(1);
    drop(cluster.flo_at(3).text(&["kv", "set", "between", "2"]));
    cluster.restart(1);
    cluster.await_health();
    // The first one leaves: its data stays.
    let (_, ended) = cluster.shrink(1);
    assert!(ended.success(), "{ended}");
    let (_, ended) = cluster.shrink(2);
    assert!(ended.success(), "{ended}");
    let last = cluster.flo();
    assert_eq!(said(&last, &["kv", "get", "before"]), "1");
    assert_eq!(said(&last, &["kv", "get", "between"]), "2");
    assert_eq!(
        said(&last, &["cluster", "remove", "1"]),
        "node 1 is already removed"
    );
}

#[test]
fn a_change_of_members_that_cannot_be_is_refused_with_what_to_do() {
    let mut cluster = Cluster::of(&[1], &[]);
    cluster.grow(&Host::local(2));
    let (host, _) = cluster.shrink(2);
    let flo = cluster.flo();
    let free = host.peer_address.to_string();
    flo.refused(&["cluster", "add-learner", "2", &free])
        .expect(3, "node_id_retired")
        .hints("an id that was never used");
    let own = cluster.node(1).host().peer_address.to_string();
    flo.refused(&["cluster", "add-learner", "4", &own])
        .expect(3, "address_in_use");
    flo.refused(&["cluster", "add-learner", "4", &free])
        .expect(3, "node_unreachable")
        .hints("--join");
    flo.refused(&["cluster", "add-learner", "4", "nowhere"])
        .expect(2, "invalid_argument")
        .says("host:port");
    flo.refused(&["cluster", "promote", "7"])
        .expect(1, "node_not_found");
    flo.refused(&["cluster", "transfer-leader", "7"])
        .expect(1, "node_not_found");
    flo.refused(&["cluster", "transfer-leader"])
        .expect(3, "last_voter");
    flo.refused(&["cluster", "drain", "1"])
        .expect(3, "no_voter_to_lead")
        .hints("flo cluster undrain");
    flo.refused(&["cluster", "drain", "7"])
        .expect(1, "node_not_found");
    flo.refused(&["cluster", "undrain", "7"])
        .expect(1, "node_not_found");
    flo.refused(&["cluster", "remove", "1"])
        .expect(3, "last_voter")
        .hints("promote another node first");
    flo.refused(&["cluster", "remove", "0"])
        .expect(2, "invalid_argument");
}

#[test]
fn a_drained_node_does_not_lead_and_is_put_back_into_service() {
    let cluster = Cluster::start();
    let flo = cluster.flo();
    drop(flo.text(&["cluster", "transfer-leader", "2"]));
    assert_eq!(
        said(&flo, &["cluster", "drain", "2"]),
        "node 2 is now drained"
    );
    assert_eq!(
        said(&cluster.flo_at(2), &["cluster", "drain", "2"]),
        "node 2 is already drained"
    );
    let status = flo.json(&["cluster", "status"]);
    assert_ne!(status["leader_id"], json!(2));
    let node = |id: usize| &status["nodes"][id - 1];
    assert_eq!(
        (&node(2)["drained"], &node(2)["role"]),
        (&json!(true), &json!("follower"))
    );
    assert_eq!(node(1)["drained"], json!(null));
    assert!(said(&flo, &["cluster", "status"]).contains("drained follower"));
    flo.refused(&["cluster", "transfer-leader", "2"])
        .expect(3, "voter_drained")
        .hints("flo cluster undrain");
    drop(cluster.flo_at(2).text(&["kv", "set", "key", "1"]));
    let undrained = flo.json(&["cluster", "undrain", "2"]);
    assert_eq!(undrained, json!({"node_id": 2, "changed": true}));
    assert_eq!(
        said(&flo, &["cluster", "undrain", "2"]),
        "node 2 is already in service"
    );
    assert_eq!(
        said(&flo, &["cluster", "transfer-leader", "2"]),
        "node 2 is now the leader"
    );
}

#[test]
fn a_node_that_was_away_when_it_was_removed_exits_without_a_failure() {
    let mut cluster = Cluster::start();
    cluster.kill(3);
    let flo = cluster.flo();
    assert_eq!(
        said(&flo, &["cluster", "remove", "3"]),
        "node 3 is now removed"
    );
    for id in [1, 2] {
        assert!(cluster.node_mut(id).stop().success());
    }
    // While it is alone, no member can tell it.
    cluster.restart(3);
    cluster.restart(1);
    cluster.restart(2);
    let (status, output) = cluster.node_mut(3).end();
    assert!(status.success(), "{status}: {output}");
    assert!(
        output.contains("node 3 was removed from its cluster: its data"),
        "{output}"
    );
}
