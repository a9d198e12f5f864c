//! A new authority for all certificates, under load and without a restart.

use crate::nemesis::{Needs, Nemesis};
use crate::network::Wanted;
use crate::stage::Stage;
use flotilla_tests::{Certificates, Flo, Node, TIMEOUT, wait_until};

/// What a node logs when it uses new files.
const RENEWED: &str = "new connections use the new certificates";
const OF_NODE: [&str; 2] = ["node-key.pem", "node.pem"];
const OF_CLIENT: [&str; 2] = ["client-key.pem", "client.pem"];
/// Any call will do.
const CALL: [&str; 3] = ["kv", "scan", "none/"];

/// Replaces the certificates of all nodes and clients by those of another authority, without a restart.
pub(super) struct RotateCertificates;

impl Nemesis for RotateCertificates {
    fn name(&self) -> &'static str {
        "rotate-certificates"
    }

    fn needs(&self) -> Needs {
        Needs {
            // At the end, connections between nodes are broken.
            network: Wanted::Shaped,
            has_certificates: true,
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let scratch = stage.cluster.scratch();
        let next = Certificates::make(scratch.path("next-authority"));
        let credentials = stage.credentials();
        // A client that trusts the new authority, but has no certificate from it.
        let former = credentials
            .clients()
            .copied_to(scratch.path("certificates-former"));
        former.trust(&next);
        for flo in each_node(stage, &former) {
            drop(flo.text(&CALL));
        }
        let processes = processes(stage);
        // First everyone trusts both authorities, then everyone has new certificates, then the old one goes.
        change_each(stage, |files| files.trust(&next));
        credentials.clients().trust(&next);
        change_each(stage, |files| {
            files.replace(&OF_CLIENT, &next);
            files.replace(&OF_NODE, &next);
        });
        credentials.replace_client(&next);
        change_each(stage, |files| files.replace(&["ca.pem"], &next));
        credentials.clients().replace(&["ca.pem"], &next);
        for flo in each_node(stage, &former) {
            flo.refused(&CALL)
                .expect(5, "tls_failed")
                .says("this client's certificate is not signed by an authority that it trusts");
        }
        // Connections between nodes began with the old certificates; new ones must work with the new certificates.
        stage.network.renew();
        stage.cluster.await_health();
        assert_eq!(self::processes(stage), processes, "a node was restarted");
        format!(
            "nodes {:?} and their clients switched to a new authority without a restart; a certificate of the \
             old one is refused",
            stage.ids()
        )
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}

/// Changes the files of one node after the other, each when the previous one uses its new files.
fn change_each(stage: &Stage, change: impl Fn(&Certificates)) {
    for node in stage.cluster.nodes() {
        let seen = renewals(node);
        change(stage.credentials().node(node.id()));
        wait_until("a node to use its new files", TIMEOUT, || {
            match renewals(node) > seen {
                true => Ok(()),
                false => Err(format!("node {} has logged it {seen} times", node.id())),
            }
        });
    }
}

fn renewals(node: &Node) -> usize {
    node.output().matches(RENEWED).count()
}

/// Calls each node as a client with these certificates.
fn each_node(stage: &Stage, certificates: &Certificates) -> Vec<Flo> {
    let endpoints = stage.cluster.endpoints().into_iter();
    endpoints
        .map(|endpoint| Flo::at(endpoint).with_certificates(certificates))
        .collect()
}

fn processes(stage: &Stage) -> Vec<Option<u32>> {
    let nodes = stage.cluster.nodes().iter();
    nodes.map(Node::process_id).collect()
}
