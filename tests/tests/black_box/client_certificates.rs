//! Callers that show a client certificate instead of a token (X11, X12, X17).

use crate::files::{example, fixture};
use flotilla_tests::{Cluster, CommandWorker, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};
use std::thread;

/// The subject of the certificate that `flo cert dev` makes for clients.
const CLIENT: &str = "cert:dns:client";

/// Three nodes with TLS, a caller with a certificate, and an administrator with only a token.
struct Access {
    cluster: Cluster,
    client: Flo,
    root: Administrator,
}

/// A caller without a client certificate.
struct Administrator {
    flo: Flo,
    ca: String,
}

impl Administrator {
    fn text(&self, arguments: &[&str]) -> String {
        self.flo
            .text(&[&["--tls-ca", &self.ca], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.flo
            .json(&[&["--tls-ca", &self.ca], arguments].concat())
    }

    fn bind(&self, flags: &[&str]) -> String {
        self.text(&[&["auth", "bind", CLIENT], flags].concat())
    }
}

impl Access {
    fn open() -> Self {
        let cluster = Cluster::secured();
        let client = cluster.flo();
        let create = ["token", "create", "root", "--cluster"];
        let create = [&create[..], &["--role", "cluster-admin"]].concat();
        let token = client.json(&create)["secret"].clone();
        let token = token.as_str().expect("a text");
        let ca = cluster.certificates().path("ca.pem");
        let root = Administrator {
            flo: Flo::at(cluster.endpoints().join(",")).with_token(token),
            ca: ca.to_str().expect("a plain name").to_owned(),
        };
        Self {
            cluster,
            client,
            root,
        }
    }

    fn closed() -> Self {
        let access = Self::open();
        let _ = access.root.text(&["auth", "enable"]);
        access
    }
}

#[test]
fn a_client_certificate_has_the_rights_of_its_bindings() {
    let Access {
        cluster,
        client,
        root,
    } = Access::closed();
    // It is known, but may do nothing.
    let set = ["kv", "set", "k", "v"];
    client.refused(&set).expect(3, "permission_denied");
    let caller = client.json(&["auth", "whoami"]);
    let subject = &caller["subject"];
    assert_eq!(
        (&subject["subject"], &subject["identity"]),
        (&json!(CLIENT), &json!(format!("service:{CLIENT}"))),
    );
    assert_eq!(
        (&subject["bindings"], &caller["token"]),
        (&json!([]), &Value::Null)
    );
    // At every node, and nowhere but in its namespace.
    let bound = root.bind(&["--role", "editor", "--role", "worker"]);
    assert_eq!(bound, format!("{CLIENT} bound"));
    for id in cluster.ids() {
        let here = Flo::at(cluster.node(id).endpoint()).with_certificates(cluster.certificates());
        let _ = here.text(&set);
        here.within("shop")
            .refused(&set)
            .expect(3, "permission_denied")
            .says("shop");
    }
    client
        .refused(&["token", "list"])
        .expect(3, "permission_denied");
    // A worker works with it, and owns its id.
    let payment = example("workflows/payment-flow.yaml");
    let actions = [("check-fraud", "cat"), ("charge-payment", "echo 1")];
    let worker = CommandWorker::start(&client, cluster.scratch(), "w1", &actions);
    let _ = client.text(&["workflow", "create", "-f", &payment]);
    let start = ["workflow", "start", "payment-flow", r#"{"amount": 5}"#];
    let _ = client.text(&[&start[..], &["--wait"]].concat());
    drop(worker);
    // Neither is shown: in an open cluster, too, when it uses TLS.
    let stranger = Flo::at(cluster.node(1).endpoint());
    let flags = ["--tls-ca", &root.ca, "kv", "get", "k"];
    let missing = stranger.refused(&flags);
    missing.expect(3, "credential_missing").hints("certificate");
    let _ = root.text(&["auth", "disable", "--yes"]);
    stranger.refused(&flags).expect(3, "credential_missing");
    let _ = client.within("shop").text(&set);
}

#[test]
fn a_dry_run_shows_the_certificates_that_have_no_rights() {
    let access = Access::open();
    let Access { client, root, .. } = &access;
    let _ = client.text(&["kv", "set", "k", "v"]);
    let dry_run = ["auth", "enable", "--dry-run"];
    let refused = |shown: &Value| {
        let calls = shown["calls"].as_array().expect("a list");
        let mut calls = calls.iter();
        calls.any(|row| row["permission"] == "kv.write" && row["subject"] == CLIENT)
    };
    let shown = root.json(&dry_run);
    assert!(refused(&shown), "{shown}");
    // A binding that does not permit the call changes nothing, and nor does one elsewhere.
    let _ = root.bind(&["--role", "viewer"]);
    let _ = root.bind(&["--role", "editor@shop", "--cluster"]);
    let shown = root.json(&dry_run);
    assert!(refused(&shown), "{shown}");
    let _ = root.bind(&["--role", "editor"]);
    wait_until("all nodes to know the binding", TIMEOUT, || {
        let shown = root.json(&dry_run);
        match refused(&shown) {
            false => Ok(()),
            true => Err(shown.to_string()),
        }
    });
}

#[test]
fn a_watch_ends_when_its_caller_is_blocked_or_loses_its_binding() {
    for (command, code) in [
        ("unbind", "permission_denied"),
        ("block", "subject_blocked"),
    ] {
        let access = Access::closed();
        let Access { client, root, .. } = &access;
        let _ = root.bind(&["--role", "editor"]);
        let _ = client.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
        let start = ["workflow", "start", "parked", "--run-id", "watched"];
        let _ = client.text(&start);
        let refusal = thread::scope(|scope| {
            let watch = ["workflow", "history", "watched", "--follow"];
            let watching = scope.spawn(move || client.refused(&watch));
            wait_until("a node to have the watch", TIMEOUT, || is_watched(root));
            let _ = root.text(&["auth", command, CLIENT]);
            watching.join().expect("it ends")
        });
        refusal.expect(3, code);
    }
}

/// Whether a node has a caller that watches a run.
fn is_watched(root: &Administrator) -> Result<(), String> {
    let nodes = ["1", "2", "3"].map(|node| root.json(&["cluster", "inspect", "--node", node]));
    let has_watcher = |node: &Value| {
        node["watchers"]
            .as_array()
            .is_some_and(|rows| !rows.is_empty())
    };
    match nodes.iter().any(has_watcher) {
        true => Ok(()),
        false => Err("no node has a watcher".to_owned()),
    }
}

#[test]
fn what_a_subject_has_created_ends_with_it_on_request() {
    let Access { client, root, .. } = &Access::closed();
    let _ = root.bind(&["--role", "admin"]);
    let make = |name: &str, subject: &str| {
        let created = client.json(&["token", "create", name, "--role", "editor"]);
        let _ = client.text(&["auth", "bind", subject, "--role", "viewer"]);
        created["token"]["id"].clone()
    };
    let id = make("first", "cert:dns:till");
    // X10: the others stay valid, and the command says which they are.
    let unbound = root.json(&["auth", "unbind", CLIENT]);
    let binding = json!({"kind": "binding", "name": "cert:dns:till", "namespace": "default"});
    let token = json!({"kind": "token", "name": id, "namespace": "default"});
    assert_eq!(unbound["valid_descendants"], json!([token, binding]));
    let shown = root.text(&["auth", "block", CLIENT]);
    assert!(shown.contains("(2 in total)"), "{shown}");
    let blocked = root.json(&["auth", "block", CLIENT, "--tree"]);
    assert_eq!(blocked["tree"], json!([token, binding]));
    assert_eq!(blocked["valid_descendants"], json!([]));
    let bindings = root.json(&["auth", "bindings"]);
    assert_eq!(bindings["items"], json!([]));
    // Through a token, the same.
    let _ = root.text(&["auth", "unblock", CLIENT]);
    let admin = ["token", "create", "admin", "--role", "admin"];
    let created = root.json(&admin);
    let admin = created["token"]["id"].as_str().expect("an id");
    let secret = created["secret"].as_str().expect("a text");
    let by_token = Administrator {
        flo: root.flo.with_token(secret),
        ca: root.ca.clone(),
    };
    let _ = by_token.bind(&["--role", "admin"]);
    let id = make("second", "cert:dns:till");
    let revoked = root.json(&["token", "revoke", admin, "--tree"]);
    let mut ended: Vec<Value> = revoked["tree"].as_array().expect("a list").clone();
    ended.sort_by_key(|one| one["name"].to_string());
    let names: Vec<&Value> = ended.iter().map(|one| &one["name"]).collect();
    let mut expected = [json!("cert:dns:client"), json!("cert:dns:till"), id];
    expected.sort_by_key(Value::to_string);
    assert_eq!(names, expected.iter().collect::<Vec<_>>());
}
