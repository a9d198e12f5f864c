//! Nodes and clients that trust each other only by certificates.

use crate::files::{example, fixture};
use flotilla_tests::{
    Certificates, Cluster, CommandWorker, DevNode, Flo, Scratch, TIMEOUT, wait_until,
};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// What a node logs when it uses new certificates.
const RENEWED: &str = "new connections use the new certificates";

#[test]
fn three_nodes_over_tls_run_a_workflow_with_workers_and_modules() {
    let mut cluster = Cluster::secured();
    let flo = cluster.flo();
    let module = fixture("tally.wat");
    drop(flo.text(&["action", "register", "tally", "--wasm", &module]));
    let worker = CommandWorker::start(
        &flo,
        cluster.scratch(),
        "w1",
        &[
            ("check-fraud", "cat"),
            ("charge-payment", r#"echo '{"payment_id":"pay-1"}'"#),
        ],
    );
    let payment = example("workflows/payment-flow.yaml");
    drop(flo.text(&["workflow", "create", "-f", &payment]));
    for node in cluster.nodes() {
        let start = [
            "workflow",
            "start",
            "payment-flow",
            r#"{"amount": 5}"#,
            "--wait",
        ];
        let output = node.flo().json(&start);
        assert_eq!(output, json!({"payment_id": "pay-1"}), "node {}", node.id());
        // Embedded workers of all nodes find the leader.
        let invoke = ["action", "invoke", "tally", "1", "--wait"];
        drop(node.flo().text(&invoke));
    }
    // A lost leader is accepted again when it returns.
    let leader = cluster.leader();
    cluster.kill(leader);
    drop(flo.text(&["--timeout", "60s", "kv", "set", "after", "1"]));
    cluster.restart(leader);
    cluster.await_health();
    let _ = cluster.agreement();
    drop(worker);
}

#[test]
fn a_client_without_a_valid_certificate_is_refused_immediately() {
    let cluster = Cluster::secured();
    let certificates = cluster.certificates();
    let node = cluster.node(1);
    let list = ["kv", "scan", ""];
    let refused = |flo: &Flo, flags: &[&str]| {
        let refusal = flo.refused(&[flags, &list].concat());
        refusal.expect(5, "tls_failed");
        refusal
    };
    let plain = Flo::at(node.endpoint());
    refused(&plain, &[]).says("requires TLS").hints("--tls-ca");
    let ca = certificates.path("ca.pem");
    let ca = ca.to_str().expect("a test's folder has a plain name");
    plain
        .refused(&[&["--tls-ca", ca], &list[..]].concat())
        .expect(3, "credential_missing")
        .hints("client certificate");
    let others = Certificates::make(cluster.scratch().path("others"));
    refused(&plain.with_certificates(&others), &[])
        .says("not signed by a trusted authority")
        .hints("--tls-ca");
    let stranger = Certificates::make(cluster.scratch().path("strangers"));
    stranger.replace(&["ca.pem"], certificates);
    refused(&plain.with_certificates(&stranger), &[])
        .says("this client's certificate is not signed by an authority that it trusts");
    let peer = node.host().peer_address.to_string();
    refused(&Flo::at(&peer).with_certificates(certificates), &[])
        .says("not valid for this address")
        .hints("peer_listen");
    // A list of nodes is tried in order, and the trusted one serves.
    let mixed = DevNode::start();
    let both = format!("{},{}", mixed.endpoint(), node.endpoint());
    drop(Flo::at(both).with_certificates(certificates).text(&list));
    let none = Flo::at(mixed.endpoint()).with_certificates(certificates);
    refused(&none, &[]).says("does not speak TLS");
    assert!(node.output().contains("a connection was refused"));
}

#[test]
fn flags_for_tls_that_do_not_go_together_are_refused() {
    let scratch = Scratch::new();
    let certificates = Certificates::make(scratch.path("certificates"));
    let path = |name: &str| {
        let path = certificates.path(name).into_os_string();
        path.into_string()
            .expect("a test's folder has a plain name")
    };
    let (ca, cert, key) = (path("ca.pem"), path("client.pem"), path("client-key.pem"));
    let flo = Flo::at("127.0.0.1:1");
    let refused = |flags: &[&str]| flo.refused(&[flags, &["kv", "scan", ""]].concat());
    refused(&["--tls-ca", &ca, "--tls-cert", &cert])
        .expect(2, "usage")
        .says("--tls-key is not given");
    refused(&["--tls-cert", &cert, "--tls-key", &key])
        .expect(2, "usage")
        .says("--tls-ca is not given");
    refused(&["--tls-ca", &key])
        .expect(2, "tls_invalid")
        .says("to hold a certificate");
    let mixed = path("node-key.pem");
    refused(&["--tls-ca", &ca, "--tls-cert", &cert, "--tls-key", &mixed])
        .expect(2, "tls_invalid")
        .says("to belong to the certificate in");
}

#[test]
fn a_node_does_not_start_with_certificates_that_others_would_refuse() {
    let scratch = Scratch::new();
    let certificates = Certificates::make(scratch.path("certificates"));
    let others = Certificates::make(scratch.path("others"));
    let text = |path: &Path| path.display().to_string();
    let data = text(&scratch.path("data"));
    let refused = |exit: i32, flags: &[&str]| {
        let server = [&["server", "--data-dir", &data], flags].concat();
        let refusal = Flo::at("127.0.0.1:1").refused(&server);
        refusal.expect(exit, "server_start_failed");
        refusal
    };
    let own = text(&certificates.path("ca.pem"));
    let with = |cert: &str, key: &str, ca: &str, further: &[&str]| {
        let (cert, key) = (
            text(&certificates.path(cert)),
            text(&certificates.path(key)),
        );
        let flags = ["--tls-cert", &cert, "--tls-key", &key, "--tls-ca", ca];
        // Not 2, at which a supervisor gives up: the files may be valid a moment later.
        refused(3, &[&flags, further].concat())
    };
    with("node.pem", "client-key.pem", &own, &[]).says("to belong to the certificate");
    with("client.pem", "client-key.pem", &own, &[])
        .says("extended key usage serverAuth")
        .hints("serverAuth and clientAuth");
    let foreign = text(&others.path("ca.pem"));
    with("node.pem", "node-key.pem", &foreign, &[])
        .says("signed by an authority")
        .hints("tls_ca");
    with("node-key.pem", "node-key.pem", &own, &[]).says("it holds none");
    with("none.pem", "node-key.pem", &own, &[]).says("none.pem");
    let advertise = ["--advertise", "flo-1.example:9000"];
    with("node.pem", "node-key.pem", &own, &advertise)
        .says("to be for flo-1.example")
        .hints("--host flo-1.example");
    refused(2, &["--tls-ca", &own]).says("`tls_cert` is not given");
    // Without certificates only loopback is served, unless requested.
    let open = ["--listen", "0.0.0.0:0", "--advertise", "flo-1.example:9000"];
    refused(2, &open)
        .says("`listen` to be a loopback address")
        .hints("tls_cert");
}

#[test]
fn certificates_are_renewed_and_the_authority_replaced_while_no_call_fails() {
    let mut cluster = Cluster::secured();
    let nodes = cluster.certificates().clone();
    let next = Certificates::make(cluster.scratch().path("next"));
    // Clients have separate folders, as they would on their machines.
    let copy = |name: &str, of: &Certificates| {
        let copy = Certificates::make(cluster.scratch().path(name));
        copy.replace(&["ca.pem", "client.pem", "client-key.pem"], of);
        copy
    };
    let (old, renewed) = (copy("old", &nodes), copy("renewed", &next));
    renewed.trust(&nodes);
    let any = Flo::at(cluster.endpoints().join(","));
    let calls = Calls::begin(&any.with_certificates(&old));

    // First everyone trusts both authorities, then everyone has new certificates, then the old one goes.
    nodes.trust(&next);
    await_renewal(&cluster, 1);
    old.trust(&next);
    calls.await_more();
    nodes.replace(&["node-key.pem", "node.pem"], &next);
    await_renewal(&cluster, 2);
    calls.await_more();
    calls.go_on_with(&any.with_certificates(&renewed));
    calls.await_more();
    nodes.replace(&["ca.pem"], &next);
    await_renewal(&cluster, 3);
    calls.await_more();
    calls.go_on_with(&any.with_certificates(&next));
    calls.await_more();
    calls.end();

    any.with_certificates(&old)
        .refused(&["kv", "scan", ""])
        .expect(5, "tls_failed")
        .says("this client's certificate is not signed by an authority that it trusts");
    // Nodes that reconnect trust each other, too.
    nodes.replace(&["client.pem", "client-key.pem"], &next);
    for id in cluster.ids() {
        cluster.kill(id);
        cluster.restart(id);
        cluster.await_health();
    }
    let _ = cluster.agreement();
}

#[test]
fn bad_new_files_leave_the_old_ones_in_use() {
    let cluster = Cluster::secured();
    let certificates = cluster.certificates();
    let others = Certificates::make(cluster.scratch().path("others"));
    certificates.replace(&["node.pem"], &others);
    await_lines(&cluster, "the old ones stay in use", 1);
    drop(cluster.flo().text(&["kv", "set", "still", "served"]));
    // The key follows, and the pair is still not signed by the trusted authority.
    certificates.replace(&["node-key.pem"], &others);
    await_lines(&cluster, "to be signed by an authority", 1);
    assert_eq!(cluster.flo().text(&["kv", "get", "still"]), "served");
    let _ = Certificates::make(certificates.path(""));
    await_renewal(&cluster, 1);
    drop(cluster.flo().text(&["kv", "get", "still"]));
}

/// Waits until each node has logged this often that it uses new certificates.
fn await_renewal(cluster: &Cluster, times: usize) {
    await_lines(cluster, RENEWED, times);
}

fn await_lines(cluster: &Cluster, line: &str, times: usize) {
    for node in cluster.nodes() {
        wait_until(line, TIMEOUT, || {
            let output = node.output();
            match output.matches(line).count() >= times {
                true => Ok(()),
                false => Err(output),
            }
        });
    }
}

/// One call after the other, each over a new connection.
struct Calls {
    flo: Arc<Mutex<Flo>>,
    is_over: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    caller: JoinHandle<()>,
}

impl Calls {
    fn begin(flo: &Flo) -> Self {
        let (is_over, count) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let flo = Arc::new(Mutex::new(flo.clone()));
        let caller = thread::spawn({
            let (flo, is_over, count) = (flo.clone(), is_over.clone(), count.clone());
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    let flo = flo.lock().expect("no holder panics").clone();
                    // It panics when the call fails.
                    drop(flo.text(&["kv", "set", "called", "1"]));
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self {
            flo,
            is_over,
            count,
            caller,
        }
    }

    /// Makes further calls with other certificates.
    fn go_on_with(&self, flo: &Flo) {
        *self.flo.lock().expect("no holder panics") = flo.clone();
    }

    /// Waits for calls that start from now on.
    fn await_more(&self) {
        let seen = self.count.load(Ordering::Relaxed);
        wait_until("further calls", TIMEOUT, || {
            assert!(!self.caller.is_finished(), "a call failed");
            let count = self.count.load(Ordering::Relaxed);
            match count >= seen + 3 {
                true => Ok(()),
                false => Err(format!("{count} calls after {seen}")),
            }
        });
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.caller.join().expect("no call fails");
    }
}
