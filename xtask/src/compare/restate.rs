//! Restate from its npm packages: one node, or three that replicate.

mod configuration;
mod install;

use std::fs;
use std::process::Command;

use anyhow::Result;

use super::bench::Bench;
use super::flotilla::STEPS;
use super::results::{Results, Series};
use crate::cluster::{address, free_ports};
use crate::process::Process;
use configuration::{Node, PORTS};
pub(super) use install::Restate;

/// A Restate cluster and its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    /// The name of its series.
    system: &'static str,
    /// 1 node, or 3, of which 2 hold each record.
    nodes: usize,
    /// The number of partitions; `None` for the default.
    partitions: Option<u16>,
    /// The numbers of clients, one load after another.
    clients: &'static [u16],
}

/// One node with the fastest settings.
pub(super) const SINGLE: Setup = Setup {
    system: "Restate, 1 node",
    nodes: 1,
    partitions: Some(PARTITIONS_BEST),
    clients: &[64, 1],
};
/// Three nodes with the fastest settings.
pub(super) const THREE: Setup = Setup {
    system: "Restate, 3 nodes",
    nodes: 3,
    partitions: Some(PARTITIONS_BEST),
    clients: &[64, 1],
};
/// One node with the default settings.
pub(super) const SINGLE_DEFAULT: Setup = Setup {
    system: "Restate, 1 node, default",
    nodes: 1,
    partitions: None,
    clients: &[64],
};
/// Three nodes with the default number of partitions.
pub(super) const THREE_DEFAULT: Setup = Setup {
    system: "Restate, 3 nodes, default",
    nodes: 3,
    partitions: None,
    clients: &[64],
};

/// The number of partitions with which Restate is fastest on a machine with two cores.
const PARTITIONS_BEST: u16 = 4;

impl Setup {
    /// The series with this number of clients.
    pub(super) const fn series(&self, clients: u16) -> Series {
        Series {
            workload: STEPS,
            system: self.system,
            clients,
        }
    }
}

impl Restate {
    /// Starts a cluster and the service, runs the loads and stops both.
    ///
    /// # Errors
    /// If it does not start, or the output of a run is wrong.
    pub(super) fn measure(
        &self,
        bench: &Bench<'_>,
        setup: Setup,
        results: &mut Results,
    ) -> Result<()> {
        let folder = bench.fresh_folder("restate")?;
        let mut ports = free_ports(setup.nodes * PORTS + 1)?;
        let service_port = ports.pop().unwrap_or_default();
        let nodes: Vec<Node> = ports.chunks(PORTS).map(Node::at).collect();
        let mut processes = Vec::new();
        for (number, text) in configuration::of(&nodes, setup.partitions)
            .iter()
            .enumerate()
        {
            let name = format!("restate{}", number + 1);
            let file = folder.join(format!("{name}.toml"));
            fs::write(&file, text)?;
            let mut command = self.server(&file);
            command.current_dir(&folder);
            processes.push(Process::start(
                &name,
                &mut command,
                &bench.sandbox.log(&name),
            )?);
        }
        processes.push(bench.start("service", &mut self.service(service_port))?);

        let ingress: Vec<String> = nodes.iter().map(|node| address(node.ingress)).collect();
        let ingress = ingress.join(",");
        let mut command = Command::new(&bench.peers);
        command
            .arg("restate-prepare")
            .args(["--admin", &address(nodes[0].admin)])
            .args(["--service", &address(service_port)])
            .args(["--ingress", &ingress]);
        bench.run("restate-prepare", &mut command)?;
        for clients in setup.clients {
            let mut command = Command::new(&bench.peers);
            command
                .args(["restate", "--ingress", &ingress])
                .args(bench.pace(*clients));
            let report = bench.load("restate-load", &mut command)?;
            results.add(setup.series(*clients), report);
        }
        // All together, so that none waits for another.
        processes.iter_mut().for_each(Process::ask_to_stop);
        Ok(())
    }
}
