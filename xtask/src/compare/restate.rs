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

/// A cluster of Restate, and who calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    /// The name of its series.
    system: &'static str,
    /// 1, or 3, of which 2 hold each record.
    nodes: usize,
    /// How many partitions there are; none: as many as by default.
    partitions: Option<u16>,
    /// How many clients call it, one load after another.
    clients: &'static [u16],
}

/// One node at its best.
pub(super) const SINGLE: Setup = Setup {
    system: "Restate, 1 node",
    nodes: 1,
    partitions: Some(PARTITIONS_BEST),
    clients: &[64, 1],
};
/// Three nodes at their best.
pub(super) const THREE: Setup = Setup {
    system: "Restate, 3 nodes",
    nodes: 3,
    partitions: Some(PARTITIONS_BEST),
    clients: &[64, 1],
};
/// One node by default.
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

/// With this many partitions Restate is fastest on a machine with two cores.
const PARTITIONS_BEST: u16 = 4;

impl Setup {
    /// Its series with so many clients.
    pub(super) const fn series(&self, clients: u16) -> Series {
        Series {
            workload: STEPS,
            system: self.system,
            clients,
        }
    }
}

impl Restate {
    /// Starts a cluster and the service, puts the loads on it and ends it.
    ///
    /// # Errors
    /// If it does not start, or an output is not what three steps make of its input.
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
        // Together, so that none waits for another one.
        processes.iter_mut().for_each(Process::ask_to_stop);
        Ok(())
    }
}
