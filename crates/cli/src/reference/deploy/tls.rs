//! Whether nodes use TLS, with existing files and for the names by which they are reached.

use super::Findings;
use flotilla_server::ServerConfig;
use std::path::Path;

/// The files of a node that `flo cert dev` makes: certificate, key and authority.
pub(super) const MADE: [&str; 3] = ["node.pem", "node-key.pem", "ca.pem"];

/// A node, as a file of `deploy` configures it.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) path: &'a str,
    /// What findings call it.
    pub(super) name: &'a str,
    pub(super) config: &'a ServerConfig,
}

impl Node<'_> {
    /// Checks that the node uses all three files in the folder and no others, and returns their
    /// names.
    pub(super) fn check(self, folder: &str, findings: &mut Findings) -> Vec<String> {
        let Self { path, name, config } = self;
        let files = [&config.tls_cert, &config.tls_key, &config.tls_ca];
        let files = files.into_iter().flatten();
        let given = files.filter(|file| file.parent() == Some(Path::new(folder)));
        let names = given.filter_map(|file| file.file_name()?.to_str());
        let names: Vec<String> = names.map(str::to_owned).collect();
        let is_safe = names.len() == 3 && !config.insecure;
        findings.expect(
            path,
            is_safe,
            format!("{name} to speak TLS with the files in {folder:?}"),
        );
        names
    }
}

/// The hosts by which others connect to a node.
pub(super) fn hosts(config: &ServerConfig) -> Vec<String> {
    let own = config
        .peers
        .iter()
        .find(|peer| peer.node_id == config.node_id);
    let addresses = own
        .map(|peer| &peer.address)
        .into_iter()
        .chain(&config.advertise);
    let hosts = addresses.filter_map(|address| Some(address.rsplit_once(':')?.0.to_owned()));
    hosts.collect()
}
