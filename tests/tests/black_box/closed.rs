//! Closed clusters from the command line (X1 to X5, X15).

use crate::files::fixture;
use flotilla_tests::{
    Cluster, CommandWorker, DevNode, Flo, Host, Scratch, TIMEOUT, get, wait_until,
};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

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
fn a_dry_run_shows_what_a_closed_cluster_would_refuse() {
    let cluster = Cluster::start();
    let stranger = cluster.flo();
    let dry_run = ["auth", "enable", "--dry-run"];
    let [first, second, _] = [1, 2, 3].map(|id| cluster.flo_at(id));
    let _ = first.text(&["kv", "set", "k", "v"]);
    let _ = second.text(&["kv", "get", "k"]);
    let _ = second.text(&["kv", "get", "k"]);
    let root = create_token(&stranger, &["--cluster", "--role", "cluster-admin"]);
    let _ = root.text(&["kv", "get", "k"]);
    let shown = root.json(&dry_run);
    assert_eq!(
        (&shown["mode"], &shown["has_token"]),
        (&json!("open"), &json!(true))
    );
    let calls = shown["calls"].as_array().expect("a list");
    let count = |node_id: u64, permission: &str| {
        let row = calls.iter().find(|row| {
            row["node_id"] == node_id
                && row["permission"] == permission
                && row["address"] == "127.0.0.1"
        });
        row.map(|row| row["count"].as_u64().expect("a number"))
    };
    assert_eq!(count(1, "kv.write"), Some(1));
    assert_eq!((count(1, "kv.read"), count(2, "kv.read")), (None, Some(2)));
    assert_eq!(shown["nodes"].as_array().map(Vec::len), Some(3));
    // Nothing has changed.
    let text = stranger.text(&dry_run);
    assert!(text.contains("--token-file"), "{text}");
    assert_eq!(stranger.json(&["auth", "whoami"])["mode"], "open");
}

#[test]
fn a_node_that_requires_tokens_serves_no_other_callers_and_keeps_the_cluster_closed() {
    let mut cluster = Cluster::start();
    let stranger = cluster.flo();
    let create = [
        "token",
        "create",
        "root",
        "--cluster",
        "--role",
        "cluster-admin",
    ];
    let token = stranger.json(&create)["secret"]
        .as_str()
        .expect("a text")
        .to_owned();
    let root = stranger.with_token(&token);
    let [follower, other] = cluster.followers()[..] else {
        panic!("expected two followers");
    };
    cluster.kill(follower);
    let require = ("FLO_REQUIRE_TOKEN".to_owned(), "true".into());
    cluster.node_mut(follower).set_environment(vec![require]);
    cluster.restart(follower);
    let at_follower = cluster.flo_at(follower).with_token(&token);
    wait_until("the node to serve callers with a token", TIMEOUT, || {
        let answer = at_follower.run(&["auth", "whoami"]);
        if answer.code == 0 {
            Ok(())
        } else {
            Err(answer.show())
        }
    });
    // The cluster is open.
    let _ = cluster.flo_at(other).text(&["kv", "set", "k", "v"]);
    cluster
        .flo_at(follower)
        .refused(&["kv", "get", "k"])
        .expect(3, "credential_missing");
    let _ = root.text(&["auth", "enable"]);
    let disable = ["auth", "disable", "--yes"];
    root.refused(&disable)
        .expect(3, "voter_requires_token")
        .says(&format!("node {follower}"))
        .hints("require_token");
    assert_eq!(root.json(&["auth", "whoami"])["mode"], "closed");
    cluster.kill(follower);
    assert_eq!(root.json(&disable)["mode"], "open");
}

#[test]
fn unknown_credentials_are_bounded_and_keep_out_no_valid_one() {
    let node = DevNode::start_with(&["--access", "closed", "--data-dir", "data"]);
    let root = node.flo().with_token(&bootstrap_token(&node));
    let guess = format!(
        "Authorization: Bearer {}",
        root.text(&["token", "generate"])
    );
    let url = format!("http://{}/v1/auth/whoami", node.http_address());
    let statuses: Vec<u16> = (0..2_000)
        .map(|_| get(&url, &[&guess]).0)
        .take_while(|status| *status == 401)
        .collect();
    assert!((1..2_000).contains(&statuses.len()), "{}", statuses.len());
    assert_eq!(root.json(&["auth", "whoami"])["mode"], "closed");
}

#[test]
fn metrics_of_a_closed_cluster_require_a_token() {
    let mut cluster = Cluster::closed();
    let root = cluster.flo();
    let url = |path: &str| format!("http://{}{path}", cluster.node(1).http_address());
    let bearer = |flags: &[&str]| {
        let created = root.json(&[&["token", "create", "prometheus"], flags].concat());
        let token = created["secret"].as_str().expect("a text");
        format!("Authorization: Bearer {token}")
    };
    let viewer = bearer(&["--cluster", "--role", "cluster-viewer"]);
    let worker = bearer(&["--role", "worker"]);
    for (shown, status, says) in [
        (None, 401, "credential_missing"),
        (Some(&worker), 403, "permission_denied"),
        (Some(&viewer), 200, "flotilla_raft_term"),
    ] {
        let headers: Vec<&str> = shown.into_iter().map(String::as_str).collect();
        let (found, body) = get(&url("/metrics"), &headers);
        assert_eq!(found, status, "{body}");
        assert!(body.contains(says), "{body}");
    }
    assert_eq!(get(&url("/readyz"), &[]).0, 200);
    // Without a quorum, too.
    let url = url("/metrics");
    cluster.kill(2);
    cluster.kill(3);
    assert_eq!(get(&url, &[&viewer]).0, 200);
    cluster.kill(1);
    let public = ("FLO_METRICS_PUBLIC".to_owned(), "true".into());
    cluster.node_mut(1).set_environment(vec![public]);
    for id in [1, 2, 3] {
        cluster.restart(id);
    }
    cluster.await_health();
    assert_eq!(get(&url, &[]).0, 200);
}

#[test]
fn forming_a_closed_cluster_requires_its_bootstrap_token() {
    let mut cluster = Cluster::unformed_closed();
    let stranger = cluster.flo().without_token();
    let form = ["--timeout", "2s", "cluster", "form"];
    let other = stranger.with_token(&Flo::at("").text(&["token", "generate"]));
    stranger
        .refused(&form)
        .expect(3, "credential_missing")
        .hints("--token-file");
    other.refused(&form).expect(3, "credential_unknown");
    let health = ["cluster", "health"];
    stranger
        .refused(&health)
        .expect(4, "not_serving")
        .hints("/readyz");
    cluster.form();
    cluster.await_health();
    assert_eq!(stranger.text(&health), "serving");
    // Only a new cluster needs the file.
    fs::remove_file(cluster.scratch().path("bootstrap.token")).expect("it was written");
    cluster.kill(2);
    cluster.restart(2);
    cluster.await_health();
    stranger
        .refused(&["cluster", "status"])
        .expect(3, "credential_missing");
    let root = cluster.flo();
    assert_eq!(root.json(&["auth", "whoami"])["token"]["name"], "bootstrap");
    let _ = root.text(&["kv", "set", "k", "v"]);
}

#[test]
fn several_first_members_of_a_closed_cluster_require_a_bootstrap_token() {
    let scratch = Scratch::new();
    let [data, file] =
        ["data", "bootstrap.token"].map(|name| scratch.path(name).display().to_string());
    let flo = Flo::at("127.0.0.1:1");
    let [own, other] = [1, 2].map(Host::local);
    let listens = [0, 1, 2].map(|offset| format!("{}:{}", own.ip, own.port + offset));
    let peers = format!("1={},2={}", own.peer_address, other.peer_address);
    let server = [
        "server",
        "--data-dir",
        &data,
        "--peers",
        &peers,
        "--listen",
        &listens[0],
        "--peer-listen",
        &listens[1],
        "--http-listen",
        &listens[2],
    ];
    let refused = |flags: &[&str]| {
        let refusal = flo.refused(&[&server, flags].concat());
        refusal.expect(2, "server_start_failed");
        refusal
    };
    refused(&[])
        .says("`bootstrap_token_file`")
        .hints("flo token generate")
        .hints("--access open");
    let with_file = ["--bootstrap-token-file", &file];
    refused(&with_file)
        .says("bootstrap.token")
        .hints("flo token generate");
    assert_eq!(
        flo.text(&["token", "generate", &file]),
        format!("bootstrap token in {file}")
    );
    let token = fs::read_to_string(&file).expect("it was written");
    // The file of another cluster is not replaced.
    let kept = flo.text(&["token", "generate", &file]);
    assert!(kept.starts_with("kept "), "{kept}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), token);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("own file");
    refused(&with_file)
        .says("its mode is 644")
        .hints("chmod o=");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("own file");
    refused(&with_file)
        .says("`keyring_file`")
        .hints("flo keyring generate");
    let keyring = scratch.path("keyring").display().to_string();
    let both = [&with_file[..], &["--keyring-file", &keyring]].concat();
    refused(&both).says("keyring").hints("flo keyring generate");
    fs::write(&keyring, "k1 short").expect("room");
    refused(&both).says("its mode is 644");
    fs::set_permissions(&keyring, Permissions::from_mode(0o600)).expect("own file");
    refused(&both).says("line 1 is something else");
}

#[test]
fn a_cluster_is_closed_only_with_one_keyring_on_all_voters() {
    let mut cluster = Cluster::start();
    let stranger = cluster.flo();
    let root = create_token(&stranger, &["--cluster", "--role", "cluster-admin"]);
    let [follower, _] = cluster.followers()[..] else {
        panic!("expected two followers");
    };
    let other = cluster.scratch().path("other-keyring");
    let _ = root.text(&["keyring", "generate", &other.display().to_string()]);
    let file = ("FLO_KEYRING_FILE".to_owned(), other.clone().into());
    cluster.kill(follower);
    let enable = ["auth", "enable"];
    root.refused(&enable)
        .expect(3, "keyrings_differ")
        .says(&format!("node {follower}"))
        .says("it does not respond");
    cluster.node_mut(follower).set_environment(vec![file]);
    cluster.restart(follower);
    cluster.await_health();
    root.refused(&enable)
        .expect(3, "keyrings_differ")
        .says("it has another keyring")
        .hints("flo cluster inspect");
    // A node reads a changed file without a restart.
    let own = cluster.scratch().path("keyring");
    fs::copy(&own, &other).expect("room");
    wait_until("the node to use the changed keyring", TIMEOUT, || {
        let answer = root.run(&enable);
        if answer.code == 0 {
            Ok(())
        } else {
            Err(answer.show())
        }
    });
    stranger
        .refused(&["kv", "get", "k"])
        .expect(3, "credential_missing");
}

#[test]
fn the_token_of_a_task_needs_the_mac_that_its_worker_received() {
    let cluster = Cluster::closed();
    let root = cluster.flo();
    let stranger = root.without_token();
    let worker = create_token(&root, &["--role", "worker"]);
    let definition = cluster.scratch().write(
        "transfer.yaml",
        "kind: Workflow\nname: transfer\nversion: '1'\nsteps:\n\
         - {name: order, run: '@actions/order', tracking: {mode: async}}\n",
    );
    let _ = root.text(&["workflow", "create", "-f", &definition]);
    let _ = root.text(&["action", "register", "order"]);
    let file = cluster.scratch().path("token");
    let order = format!(
        "echo $FLO_TASK_TOKEN > {0}.part; mv {0}.part {0}; exit 76",
        file.display()
    );
    let _bank = CommandWorker::start(&worker, cluster.scratch(), "bank", &[("order", &order)]);
    let run_id = root.text(&["workflow", "start", "transfer"]);
    wait_until("the worker to accept the task", TIMEOUT, || {
        let history = root.text(&["workflow", "history", &run_id]);
        match history.contains("awaiting_report") {
            true => Ok(()),
            false => Err(history),
        }
    });
    let token = fs::read_to_string(&file).expect("the worker has written it");
    let token = token.trim_end();
    let refused = |token: &str, code: &str| {
        stranger
            .refused(&["action", "report", token])
            .expect(3, code);
    };
    // What the log has of the token does not suffice.
    let bare: Vec<&str> = token.split('.').take(3).collect();
    refused(&bare.join("."), "report_token_mismatch");
    let forged = format!("{}AAAA", &token[..token.len() - 4]);
    refused(&forged, "task_token_wrong");
    let _ = stranger.text(&["action", "report", token]);
    let ended = root.json(&["workflow", "status", &run_id]);
    assert_eq!(ended["status"], "completed", "{ended}");
}

#[test]
fn lost_access_is_recovered_with_the_data_directory() {
    let mut node = DevNode::start_with(&["--access", "closed", "--data-dir", "data"]);
    let stranger = node.flo();
    let root = stranger.with_token(&bootstrap_token(&node));
    let bootstrap = root.json(&["auth", "whoami"])["token"]["id"].clone();
    let id = bootstrap.as_str().expect("a text");
    let _ = root.text(&["token", "revoke", id, "--cluster"]);
    root.refused(&["kv", "get", "k"])
        .expect(3, "credential_revoked");

    let data = node.scratch().path("data/node-1").display().to_string();
    let recovered = stranger.text(&["auth", "recover", "--data-dir", &data]);
    let recovered = stranger.with_token(&recovered);
    let token = recovered.json(&["auth", "whoami"])["token"].clone();
    assert_eq!(
        (&token["name"], &token["identity"]),
        (&json!("recovery"), &json!("user:recovery"))
    );
    let _ = create_token(&recovered, &["--cluster", "--role", "cluster-admin"]);

    let elsewhere = node.scratch().path(".").display().to_string();
    stranger
        .refused(&["auth", "recover", "--data-dir", &elsewhere])
        .expect(2, "data_dir_invalid");
    // Without a running node, nothing is left behind that would have an effect later.
    node.process().kill();
    stranger
        .refused(&["--timeout", "1s", "auth", "recover", "--data-dir", &data])
        .expect(4, "recovery_timeout")
        .hints("is running");
    let left = fs::read_dir(&data).expect("a directory");
    let left = left.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let left: Vec<String> = left.filter(|name| name.contains("recovery")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn access_is_recovered_through_any_member() {
    let mut cluster = Cluster::closed();
    let leader = cluster.leader();
    cluster.kill(leader);
    let stranger = cluster.flo().without_token();
    let tokens: Vec<String> = [1, 2, 3]
        .into_iter()
        .filter(|member| *member != leader)
        .map(|member| {
            let data = cluster.node(member).data_dir().display().to_string();
            stranger.text(&["--timeout", "30s", "auth", "recover", "--data-dir", &data])
        })
        .collect();
    cluster.restart(leader);
    for token in tokens {
        let status = stranger.with_token(&token).json(&["cluster", "status"]);
        assert!(status["nodes"].is_array(), "{status}");
    }
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
