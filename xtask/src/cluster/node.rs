//! One `flo server`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::NodeId;
use super::ports::{Ports, address};
use crate::process::Process;
use crate::{flo, project};

/// The log level: readers of a log's end do not want every message of the consensus library.
const LOG_FILTER: &str = "info,openraft=warn";

/// A node that can be killed and started again.
pub(super) struct Node {
    id: NodeId,
    ports: Ports,
    command: Command,
    log: PathBuf,
    process: Process,
}

impl Node {
    /// Starts it.
    ///
    /// # Errors
    /// If the program does not start.
    pub(super) fn start(
        id: NodeId,
        ports: Ports,
        mut command: Command,
        log: PathBuf,
    ) -> Result<Self> {
        let process = Process::start(&name(id), &mut command, &log)?;
        Ok(Self {
            id,
            ports,
            command,
            log,
            process,
        })
    }

    /// Starts it again, after it was killed.
    ///
    /// # Errors
    /// If the program does not start.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.process = Process::start(&name(self.id), &mut self.command, &self.log)?;
        Ok(())
    }

    /// # Errors
    /// If the system refuses it.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    pub(super) fn id(&self) -> NodeId {
        self.id
    }

    /// Where it serves clients.
    pub(super) fn endpoint(&self) -> String {
        address(self.ports.client)
    }

    /// Where it serves clients, peers and HTTP.
    pub(super) fn addresses(&self) -> [String; 3] {
        let Ports { client, peer, http } = self.ports;
        [client, peer, http].map(address)
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    pub(super) fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A server with its configuration file of `deploy/local`.
pub(super) fn server(binary: &Path, id: NodeId) -> Command {
    let mut command = flo::command(binary);
    command
        .args(["server", "--log", LOG_FILTER, "--config"])
        .arg(configuration_path(id));
    command
}

/// A server without a configuration file and without TLS; the caller adds the addresses to listen on.
pub(super) fn plain_server(binary: &Path, id: NodeId) -> Command {
    let mut command = flo::command(binary);
    command
        .args(["server", "--log", LOG_FILTER, "--access", "open"])
        .args(["--node-id", &id.to_string()])
        .args(["--data-dir", &format!(".flo/node{id}")]);
    command
}

/// Overrides the ports of a server's configuration file, its own and those of its peers.
pub(super) fn listen(server: &mut Command, ports: Ports, peers: &str) {
    server
        .args(["--listen", &address(ports.client)])
        .args(["--peer-listen", &address(ports.peer)])
        .args(["--http-listen", &address(ports.http)])
        .args(["--peers", peers]);
}

fn configuration_path(id: NodeId) -> PathBuf {
    let path = format!("deploy/local/node{id}.toml");
    project::root().join(path)
}

fn name(id: NodeId) -> String {
    format!("node {id}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use toml::Table;

    use super::super::ports::{PORT_CONFIGURED, from};
    use super::*;

    fn configuration(id: NodeId) -> Table {
        let text = fs::read_to_string(configuration_path(id));
        text.unwrap().parse().unwrap()
    }

    #[test]
    fn the_files_name_the_given_ports() {
        for (id, ports) in (1..).zip(from(PORT_CONFIGURED)) {
            let configuration = configuration(id);
            let addresses = ["listen", "peer_listen", "http_listen"];
            let addresses = addresses.map(|key| configuration[key].as_str().unwrap().to_owned());
            assert_eq!(
                addresses,
                [ports.client, ports.peer, ports.http].map(address)
            );
        }
    }

    #[test]
    fn the_files_name_the_same_peers_and_each_its_own_address_among_them() {
        for id in 1..=3 {
            let configuration = configuration(id);
            assert_eq!(configuration["node_id"].as_integer(), id.try_into().ok());
            assert_eq!(configuration["peers"], self::configuration(1)["peers"]);
            let peers = configuration["peers"].as_array().unwrap();
            let own = format!("{id}={}", configuration["peer_listen"].as_str().unwrap());
            assert!(
                peers.iter().any(|peer| peer.as_str() == Some(&own)),
                "{own}"
            );
        }
    }

    #[test]
    fn the_files_share_no_address_and_no_folder() {
        let mut seen = Vec::new();
        for id in 1..=3 {
            for key in ["listen", "peer_listen", "http_listen", "data_dir"] {
                let value = configuration(id)[key].as_str().unwrap().to_owned();
                assert!(!seen.contains(&value), "{value} is given twice");
                seen.push(value);
            }
        }
    }
}
