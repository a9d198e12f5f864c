//! Closed clusters from the command line (X1 to X5, X15).

use crate::files::fixture;
use flotilla_tests::{Cluster, CommandWorker, DevNode, Flo};
use std::fs;

/// The token that administers a cluster of `flo dev`.
fn bootstrap_token(node: &DevNode) -> String {
    let file = node.scratch().path("data/bootstrap-token");
    fs::read_to_string(file)
        .expect("a closed cluster has written it")
        .trim()
        .to_owned()
}

fn create_token(flo: &Flo, flags: &[&str]) -> Flo {
    let create = [&["token", "create", "a token"], flags].concat();
    let created = flo.json(&create);
    flo.with_token(created["secret"].as_str().expect("a text"))
}

#[test]
fn a_closed_cluster_refuses_callers_without_a_token() {
    let mut node = DevNode::start_with(&["--access", "closed", "--data-dir", "data"]);
    let (stranger, root) = (node.flo(), node.flo().with_token(&bootstrap_token(&node)));
    for line in [
        &["kv", "get", "k"][..],
        &["kv", "set", "k", "v"],
        &["cluster", "status"],
        &["auth", "whoami"],
        &["auth", "disable", "--yes"],
    ] {
        stranger
            .refused(line)
            .expect(3, "credential_missing")
            .hints("token");
    }
    assert_eq!(root.json(&["auth", "whoami"])["mode"], "closed");
    let _ = root.text(&["kv", "set", "k", "v"]);
    // A worker's token suffices for all that a worker does.
    let worker = create_token(&root, &["--role", "worker"]);
    let _ = root.text(&["action", "register", "greet"]);
    let greeting = CommandWorker::start(&worker, node.scratch(), "w", &[("greet", "echo 1")]);
    let invoked = root.text(&["action", "invoke", "greet", "{}", "--wait"]);
    assert_eq!(invoked, "1");
    worker
        .refused(&["kv", "get", "k"])
        .expect(3, "permission_denied");
    drop(greeting);
    // The mode is in the state.
    node.restart();
    stranger
        .refused(&["kv", "get", "k"])
        .expect(3, "credential_missing");
    assert_eq!(root.text(&["kv", "get", "k"]), "v");
}

#[test]
fn closing_a_cluster_requires_a_token() {
    let node = DevNode::start_with(&["--access", "closed", "--data-dir", "data"]);
    let (stranger, root) = (node.flo(), node.flo().with_token(&bootstrap_token(&node)));
    let admin = create_token(&root, &["--role", "admin"]);
    let disable = ["auth", "disable", "--yes"];
    admin
        .refused(&disable)
        .expect(3, "permission_denied")
        .says("access.write");
    assert_eq!(root.json(&disable)["mode"], "open");
    let _ = stranger.text(&["kv", "set", "k", "v"]);
    stranger
        .refused(&["auth", "enable"])
        .expect(3, "access_not_bootstrapped")
        .hints("flo token create");
    assert_eq!(root.json(&["auth", "enable"])["mode"], "closed");
    stranger
        .refused(&["kv", "get", "k"])
        .expect(3, "credential_missing");
    assert_eq!(root.text(&["kv", "get", "k"]), "v");
}

#[test]
fn forming_a_closed_cluster_requires_its_bootstrap_token() {
    let cluster = Cluster::unformed_closed();
    let stranger = cluster.flo().without_token();
    let form = ["--timeout", "2s", "cluster", "form"];
    let other = stranger.with_token(&Flo::at("").text(&["token", "generate"]));
    stranger
        .refused(&form)
        .expect(4, "access_not_initialized")
        .hints("--token-file");
    other.refused(&form).expect(4, "access_not_initialized");
    cluster.form();
    cluster.await_health();
    stranger
        .refused(&["cluster", "status"])
        .expect(3, "credential_missing");
    let root = cluster.flo();
    assert_eq!(root.json(&["auth", "whoami"])["token"]["name"], "bootstrap");
    let _ = root.text(&["kv", "set", "k", "v"]);
}

#[test]
fn modules_run_on_every_node_of_a_closed_cluster() {
    let mut cluster = Cluster::closed();
    let flo = cluster.flo();
    let _ = flo.text(&[
        "action",
        "register",
        "tally",
        "--wasm",
        &fixture("tally.wat"),
    ]);
    for input in 0..6 {
        let _ = flo.text(&["action", "invoke", "tally", &input.to_string()]);
    }
    // The embedded workers find the next leader, too.
    let leader = cluster.leader();
    cluster.kill(leader);
    for input in 6..9 {
        let input = input.to_string();
        let invoke = [
            "action",
            "invoke",
            "tally",
            &input,
            "--idempotency-key",
            &input,
        ];
        let _ = flo.text(&invoke);
    }
    cluster.restart(leader);
    assert_eq!(flo.text(&["kv", "get", "tally"]), "I".repeat(9));
}
