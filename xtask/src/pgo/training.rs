//! The loads under which the profile is taken.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::cluster::Cluster;
use crate::load;
use crate::sandbox::Sandbox;
use crate::stages::say;

/// A load of `flo bench`.
struct Load {
    name: &'static str,
    clients: u8,
    seconds: u8,
}

/// Runs through all steps are what most clusters do, so they weigh most. One client alone takes paths that many
/// clients do not: entries of one command.
const LOADS: [Load; 4] = [
    Load {
        name: "steps",
        clients: 64,
        seconds: 15,
    },
    Load {
        name: "start",
        clients: 128,
        seconds: 8,
    },
    Load {
        name: "steps",
        clients: 1,
        seconds: 5,
    },
    Load {
        name: "signal",
        clients: 32,
        seconds: 8,
    },
];

/// Runs the loads on three nodes, then stops the nodes: a process writes its profile when it exits.
///
/// # Errors
/// If the nodes do not start, or a load fails.
pub(super) fn run(flo: &Path, sandbox: &Sandbox) -> Result<()> {
    let cluster = Cluster::start_afresh(flo, sandbox.folder(), &sandbox.interrupt)?;
    for Load {
        name,
        clients,
        seconds,
    } in LOADS
    {
        let (clients, length) = (clients.to_string(), seconds.to_string());
        let words = ["bench", name, "--clients", &clients, "--seconds", &length];
        let mut command = cluster.client().command(&words);
        let length = Duration::from_secs(seconds.into());
        let report = load::measure(sandbox, "flo-load", &mut command, length)?;
        say(format!(
            "{name}, {clients} clients: {} per second",
            report["runs_per_s"]
        ));
    }
    cluster.stop(&sandbox.interrupt)
}
