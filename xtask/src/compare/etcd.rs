//! etcd from Debian: three members with their default, durable settings.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::bench::Bench;
use super::results::{Results, Series};
use crate::cluster::{address, free_ports};
use crate::process::Process;
use crate::requirements::is_program;
use crate::{child, debian, project};

/// Debian's package.
const PACKAGE: &str = "etcd-server";
/// The program in the package.
const PROGRAM: &str = "etcd";
/// How many members there are.
const MEMBERS: usize = 3;
/// The length of a value, in bytes.
const VALUE_BYTES: &str = "256";

const WORKLOAD: &str = "puts of 256 bytes";

/// 128 clients, spread over the members.
pub(super) const SPREAD: Series = Series {
    workload: WORKLOAD,
    system: "etcd, any member",
    clients: 128,
};

/// 128 clients at the leader, which saves the hop from the other members.
pub(super) const LEADER: Series = Series {
    workload: WORKLOAD,
    system: "etcd, leader",
    clients: 128,
};

/// One client at the leader.
pub(super) const ALONE: Series = Series {
    workload: WORKLOAD,
    system: "etcd, leader",
    clients: 1,
};

/// The program.
pub(super) struct Etcd {
    program: PathBuf,
}

impl Etcd {
    /// The program on this machine, or else fetched from Debian into the target folder.
    ///
    /// # Errors
    /// If it is neither installed nor can be fetched.
    pub(super) fn find() -> Result<Self> {
        if is_program(PROGRAM) {
            let program = PROGRAM.into();
            return Ok(Self { program });
        }
        let folder = project::target_dir()?.join("tools").join(PACKAGE);
        let program = folder.join("usr/bin").join(PROGRAM);
        if !program.is_file() {
            debian::unpack(PACKAGE, &folder).context(
                "expected etcd, but it is not in the PATH and could not be fetched; `sudo apt-get install etcd-server` \
                 installs it, and --only restate,python does without",
            )?;
        }
        Ok(Self { program })
    }

    /// Its version.
    ///
    /// # Errors
    /// If it does not run.
    pub(super) fn version(&self) -> Result<String> {
        child::first_line(Command::new(&self.program).arg("--version"))
    }

    /// Starts a cluster, runs the loads on it and stops it.
    ///
    /// # Errors
    /// If it does not start, or an acknowledged put is missing.
    pub(super) fn measure(&self, bench: &Bench<'_>, results: &mut Results) -> Result<()> {
        let folder = bench.fresh_folder("etcd")?;
        let ports = free_ports(2 * MEMBERS)?;
        let urls: Vec<String> = ports.iter().map(|port| url(*port)).collect();
        let (clients, peers) = urls.split_at(MEMBERS);
        let mut members = Vec::new();
        for number in 0..MEMBERS {
            let name = name(number);
            let mut command = Command::new(&self.program);
            command
                .current_dir(&folder)
                .args(arguments(number, clients, peers));
            members.push(Process::start(
                &name,
                &mut command,
                &bench.sandbox.log(&name),
            )?);
        }
        for series in [SPREAD, LEADER, ALONE] {
            let mut command = Command::new(&bench.peers);
            command
                .args(["etcd", "--endpoints", &clients.join(",")])
                .args(["--value-bytes", VALUE_BYTES])
                .args(bench.pace(series.clients));
            if series.system == LEADER.system {
                command.arg("--leader");
            }
            results.add(series, bench.load("etcd-load", &mut command)?);
        }
        // All together, so that none waits for another.
        members.iter_mut().for_each(Process::ask_to_stop);
        Ok(())
    }
}

/// Only addresses and folders are set: everything else is the default.
fn arguments(number: usize, clients: &[String], peers: &[String]) -> Vec<String> {
    let members = peers.iter().enumerate();
    let members = members.map(|(number, url)| format!("{}={url}", name(number)));
    let cluster = members.collect::<Vec<_>>().join(",");
    let name = name(number);
    let words = [
        "--name",
        &name,
        "--data-dir",
        &name,
        "--listen-client-urls",
        &clients[number],
        "--advertise-client-urls",
        &clients[number],
        "--listen-peer-urls",
        &peers[number],
        "--initial-advertise-peer-urls",
        &peers[number],
        "--initial-cluster",
        &cluster,
    ];
    words.map(str::to_owned).to_vec()
}

fn name(number: usize) -> String {
    format!("etcd{}", number + 1)
}

fn url(port: u16) -> String {
    format!("http://{}", address(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_knows_all_and_keeps_its_defaults() {
        let urls = |ports: [u16; 3]| ports.map(url).to_vec();
        let arguments = arguments(1, &urls([1, 2, 3]), &urls([4, 5, 6]));
        let line = arguments.join(" ");
        assert!(line.starts_with("--name etcd2 --data-dir etcd2 "), "{line}");
        let cluster = "etcd1=http://127.0.0.1:4,etcd2=http://127.0.0.1:5,etcd3=http://127.0.0.1:6";
        assert!(
            line.ends_with(&format!("--initial-cluster {cluster}")),
            "{line}"
        );
        assert!(!line.contains("fsync"), "{line}");
    }
}
