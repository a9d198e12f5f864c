//! Three Flotilla nodes and their workers.

use std::process::Command;

use anyhow::Result;

use super::bench::Bench;
use super::python::Python;
use super::report::Report;
use super::results::{Results, Series};
use crate::client::Client;
use crate::cluster::Cluster;
use crate::process;

/// The action whose tasks workers of `flo bench steps` take.
pub(super) const ACTION: &str = "flo-bench-step";
/// The maximum number of tasks that a worker holds: more than there are clients.
pub(super) const CONCURRENCY: &str = "256";

const STARTS: &str = "starts of runs";
/// The workload that Restate runs, too.
pub(super) const STEPS: &str = "runs of 3 steps";

/// 128 clients that start runs.
pub(super) const STARTS_128: Series = starts(128);
/// One client that starts runs.
pub(super) const STARTS_1: Series = starts(1);
/// 64 clients whose runs a worker over the Rust SDK serves.
pub(super) const STEPS_64: Series = steps("Flotilla, 3 nodes", 64);
/// One client whose runs a worker over the Rust SDK serves.
pub(super) const STEPS_1: Series = steps("Flotilla, 3 nodes", 1);
/// 64 clients whose runs a worker in Python serves.
pub(super) const PYTHON_64: Series = steps("Flotilla, 3 nodes, Python", 64);
/// One client whose runs a worker in Python serves.
pub(super) const PYTHON_1: Series = steps("Flotilla, 3 nodes, Python", 1);

const fn starts(clients: u16) -> Series {
    Series {
        workload: STARTS,
        system: "Flotilla, 3 nodes",
        clients,
    }
}

const fn steps(system: &'static str, clients: u16) -> Series {
    Series {
        workload: STEPS,
        system,
        clients,
    }
}

/// Measures starts of runs.
///
/// # Errors
/// If the nodes do not start or do not serve.
pub(super) fn measure_starts(bench: &Bench<'_>, results: &mut Results) -> Result<()> {
    let cluster = start(bench)?;
    for series in [STARTS_128, STARTS_1] {
        let load = ["bench", "start"];
        let report = measure(bench, &cluster.client(), &load, series.clients)?;
        results.add(series, report);
    }
    cluster.stop(bench.interrupt())
}

/// Measures runs whose steps a worker over the Rust SDK executes, in a separate process.
///
/// # Errors
/// If the nodes or the worker do not start, or the output of a run is wrong.
pub(super) fn measure_steps(bench: &Bench<'_>, results: &mut Results) -> Result<()> {
    let worker = |endpoints: &str| {
        let mut command = Command::new(&bench.peers);
        command
            .arg("worker")
            .args(["--endpoints", endpoints])
            .args(["--actions", ACTION])
            .args(["--concurrency", CONCURRENCY]);
        command
    };
    let served = Served {
        worker: &worker,
        series: [STEPS_64, STEPS_1],
    };
    served.measure(bench, results)
}

/// Measures runs whose steps a worker in Python executes.
///
/// # Errors
/// As [`measure_steps`].
pub(super) fn measure_python(
    bench: &Bench<'_>,
    python: &Python,
    results: &mut Results,
) -> Result<()> {
    let worker = |endpoints: &str| python.worker(endpoints);
    let served = Served {
        worker: &worker,
        series: [PYTHON_64, PYTHON_1],
    };
    served.measure(bench, results)
}

/// Runs whose steps a worker in a separate process executes.
struct Served<'a> {
    /// The worker, to be started for the given nodes.
    worker: &'a dyn Fn(&str) -> Command,
    series: [Series; 2],
}

impl Served<'_> {
    fn measure(&self, bench: &Bench<'_>, results: &mut Results) -> Result<()> {
        let cluster = start(bench)?;
        let endpoints = cluster.node_ids().map(|node_id| cluster.endpoint(node_id));
        let endpoints = endpoints.collect::<Vec<_>>().join(",");
        let mut worker = bench.start("worker", &mut (self.worker)(&endpoints))?;
        for series in self.series {
            // The load starts no worker itself.
            let load = ["bench", "steps", "--steps", "3", "--workers", "0"];
            let report = measure(bench, &cluster.client(), &load, series.clients)?;
            results.add(series, report);
        }
        process::stop_all([&mut worker], bench.interrupt())?;
        cluster.stop(bench.interrupt())
    }
}

fn measure(bench: &Bench<'_>, client: &Client<'_>, load: &[&str], clients: u16) -> Result<Report> {
    let pace = bench.pace(clients);
    let pace = pace.iter().map(String::as_str);
    // The namespace of the workers, whatever namespace a load uses by default.
    let place = ["--namespace", "default"];
    let words: Vec<&str> = load.iter().copied().chain(place).chain(pace).collect();
    bench.load("flo-load", &mut client.command(&words))
}

/// Three new nodes without TLS, like the other systems.
fn start(bench: &Bench<'_>) -> Result<Cluster> {
    Cluster::start_afresh(&bench.flo, bench.sandbox.folder(), bench.interrupt())
}
