//! Addresses and data directories of the nodes of `flo dev`.

use crate::code::Code;
use crate::failure::Failure;
use crate::module_compiler;
use flotilla_server::{AccessMode, Peer, ServerConfig};
use flotilla_trace::Endpoint;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The distance between the first ports of two nodes.
const PORTS_PER_NODE: u16 = 10;

/// The layout of a cluster in one process.
#[derive(Debug)]
pub(super) struct Layout {
    /// The number of nodes.
    pub(super) nodes: u16,
    /// The first node's port for clients.
    pub(super) port: u16,
    /// The parent of the nodes' data directories.
    pub(super) data_dir: PathBuf,
    /// The collector for their spans.
    pub(super) otlp_endpoint: Option<Endpoint>,
    /// Whether callers need a token.
    pub(super) access: AccessMode,
}

impl Layout {
    /// The configuration of each node.
    ///
    /// # Errors
    /// `usage` if there are not enough ports above the first one.
    pub(super) fn configs(&self) -> Result<Vec<ServerConfig>, Failure> {
        let mut configs = Vec::new();
        for index in 0..self.nodes {
            let [listen, peer_listen, http_listen] = self.addresses(index)?;
            let node_id = u64::from(index) + 1;
            configs.push(ServerConfig {
                node_id,
                listen,
                http_listen,
                peer_listen,
                data_dir: self.data_dir.join(format!("node-{node_id}")),
                otlp_endpoint: self.otlp_endpoint.clone(),
                access: self.access,
                bootstrap_token_file: self.bootstrap_token_file(),
                keyring_file: Some(self.keyring_file()),
                module_compiler: Some(module_compiler::of_this_program()),
                ..ServerConfig::default()
            });
        }
        let peer = |config: &ServerConfig| Peer {
            node_id: config.node_id,
            address: config.peer_listen.to_string(),
        };
        let peers: Vec<Peer> = configs.iter().map(peer).collect();
        for config in &mut configs {
            config.peers.clone_from(&peers);
        }
        Ok(configs)
    }

    /// The file with the bootstrap token of a closed cluster.
    pub(super) fn bootstrap_token_file(&self) -> Option<PathBuf> {
        (self.access == AccessMode::Closed).then(|| self.data_dir.join("bootstrap-token"))
    }

    /// The file with the secret keys of all nodes.
    pub(super) fn keyring_file(&self) -> PathBuf {
        self.data_dir.join("keyring")
    }

    /// What is printed before the cluster is ready.
    pub(super) fn text(&self, configs: &[ServerConfig]) -> String {
        let mut text = String::new();
        for config in configs {
            let ServerConfig {
                node_id,
                listen,
                peer_listen,
                http_listen,
                ..
            } = config;
            text.push_str(&format!(
                "node {node_id}: clients {listen}, peers {peer_listen}, HTTP {http_listen}\n"
            ));
        }
        let endpoints: Vec<String> = configs
            .iter()
            .map(|config| config.listen.to_string())
            .collect();
        text.push_str(&format!("data in {}\n", self.data_dir.display()));
        if let Some(file) = self.bootstrap_token_file() {
            text.push_str(&format!("bootstrap token in {}\n", file.display()));
        }
        text.push_str(&format!("endpoints {}\n", endpoints.join(",")));
        text
    }

    /// The addresses for clients, peers and HTTP.
    fn addresses(&self, index: u16) -> Result<[SocketAddr; 3], Failure> {
        let first = index
            .checked_mul(PORTS_PER_NODE)
            .and_then(|offset| self.port.checked_add(offset));
        let last = first.and_then(|first| first.checked_add(2));
        let (Some(first), Some(last)) = (first, last) else {
            let message = format!(
                "expected ports of {} nodes to be at most 65535, but they start at {}",
                self.nodes, self.port
            );
            return Err(Failure::new(Code::PortInvalid, message).with_hint("pass a lower --port"));
        };
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok([address(first), address(first + 1), address(last)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn each_node_takes_three_ports_and_a_folder() {
        let layout = Layout {
            nodes: 2,
            port: 9000,
            data_dir: ".flo".into(),
            otlp_endpoint: None,
            access: AccessMode::Open,
        };
        let configs = layout.configs().expect("enough ports");
        expect![[r#"
            node 1: clients 127.0.0.1:9000, peers 127.0.0.1:9001, HTTP 127.0.0.1:9002
            node 2: clients 127.0.0.1:9010, peers 127.0.0.1:9011, HTTP 127.0.0.1:9012
            data in .flo
            endpoints 127.0.0.1:9000,127.0.0.1:9010
        "#]]
        .assert_eq(&layout.text(&configs));
        assert_eq!(configs[1].http_listen.port(), 9012);
        assert_eq!(configs[1].data_dir, PathBuf::from(".flo/node-2"));
        assert_eq!(configs[0].peers.len(), 2);
        assert_eq!(configs[0].peers[1].address, "127.0.0.1:9011");
    }

    #[test]
    fn ports_end_somewhere() {
        let layout = Layout {
            nodes: 2,
            port: 65_530,
            data_dir: ".flo".into(),
            otlp_endpoint: None,
            access: AccessMode::Open,
        };
        assert_eq!(
            layout.configs().expect_err("too high").code(),
            "port_invalid"
        );
    }
}
