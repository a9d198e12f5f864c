//! The certificates of a stage with TLS: each machine has separate files.

use flotilla_client::{TlsIdentity, TlsOptions};
use flotilla_tests::{Certificates, Scratch};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The certificates of nodes and clients, from the same authority at first.
pub(crate) struct Credentials {
    nodes: BTreeMap<u64, Certificates>,
    clients: Certificates,
    /// The clients' certificate and key. In one file, since a client reads both for each connection: two files that are
    /// replaced one after the other would not match for a moment.
    identity: PathBuf,
}

impl Credentials {
    /// Makes certificates for nodes with these ids.
    pub(crate) fn issue(scratch: &Scratch, ids: &[u64]) -> Self {
        let issued = Certificates::make(scratch.path("authority"));
        let of_node = |&id: &u64| {
            let folder = scratch.path(&format!("certificates-{id}"));
            (id, issued.copied_to(folder))
        };
        let nodes = ids.iter().map(of_node).collect();
        let clients = issued.copied_to(scratch.path("certificates-clients"));
        let identity = clients.join_client();
        Self {
            nodes,
            clients,
            identity,
        }
    }

    /// The certificates of a node.
    ///
    /// # Panics
    /// When there is no node with this id.
    pub(crate) fn node(&self, id: u64) -> &Certificates {
        let found = self.nodes.get(&id);
        found.expect("they were issued for all nodes of the stage")
    }

    /// The certificates of all clients.
    pub(crate) fn clients(&self) -> &Certificates {
        &self.clients
    }

    /// Gives the clients another certificate and key.
    pub(crate) fn replace_client(&self, other: &Certificates) {
        self.clients
            .replace(&["client-key.pem", "client.pem"], other);
        self.clients.join_client();
    }

    /// The TLS settings of the clients in this process.
    pub(crate) fn tls(&self) -> TlsOptions {
        TlsOptions {
            ca: self.clients.path("ca.pem"),
            identity: Some(TlsIdentity {
                cert: self.identity.clone(),
                key: self.identity.clone(),
            }),
        }
    }
}
