//! One `flo server`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::NodeId;
use super::ports::{Ports, address};
use crate::flo;
use crate::process::Process;

/// What a reader of the logs' ends wants to see: not every message of the consensus library.
const LOG_FILTER: &str = "info,openraft=warn";

/// A node that can be killed and started again.
pub(super) struct Node {
    id: NodeId,
    endpoint: String,
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
            endpoint: address(ports.client),
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
        self.endpoint.clone()
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    pub(super) fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A server with the configuration file of `deploy/local`, but other ports.
pub(super) fn server(binary: &Path, id: NodeId, ports: Ports) -> Command {
    let mut command = flo::command(binary);
    command
        .args(["server", "--config", &configuration_path(id)])
        .args(["--log", LOG_FILTER])
        .args(["--listen", &address(ports.client)])
        .args(["--peer-listen", &address(ports.peer)])
        .args(["--http-listen", &address(ports.http)]);
    command
}

/// Relative to the root folder.
fn configuration_path(id: NodeId) -> String {
    format!("deploy/local/node{id}.toml")
}

fn name(id: NodeId) -> String {
    format!("node {id}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use toml::Table;

    use super::*;
    use crate::project;

    fn configuration(id: NodeId) -> Table {
        let path = project::root().join(configuration_path(id));
        fs::read_to_string(path).unwrap().parse().unwrap()
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
