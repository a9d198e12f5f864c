//! More and more runs that wait, each number on a separate cluster.

mod rounds;
mod tables;

use std::mem;
use std::time::Duration;

use anyhow::Result;

use super::bench::Bench;
use super::load::Load;
use super::merging;
use super::readiness;
use super::report::Report;
use super::section::Section;
use super::show::seconds;
use super::snapshot::{self, Snapshot};
use crate::cluster::{Cluster, NodeId};
use crate::stages::say;
use rounds::Rounds;

/// How many clients there are, whatever else differs.
const CLIENTS: u16 = 64;

/// How many clients open runs.
const CLIENTS_OPENING: u16 = 128;

/// How many runs are opened a second, at the very least.
const OPENED_PER_SECOND_MIN: u64 = 100;

/// How many times each load is measured on each cluster.
const ROUNDS: usize = 3;

/// A cluster with this many runs waiting, and what it did under load.
struct Stage {
    open_runs: u64,
    cluster: Cluster,
    loads: Loads,
}

/// What was measured under load, in all rounds.
#[derive(Default)]
struct Loads {
    steps: Rounds,
    start: Rounds,
}

/// What was measured with this many runs waiting.
struct Measured {
    open_runs: u64,
    loads: Loads,
    /// How long a node that was killed took until it served again.
    restart: Duration,
    snapshot: Snapshot,
    /// Whole runs while nodes made snapshots.
    beside_snapshots: Report,
    /// How many snapshots that were.
    snapshots: u32,
}

/// Measures clusters on which more and more runs wait. They stand beside each other, so that loads can be put on them
/// in turn.
///
/// # Errors
/// If one does not start or serve, or a load fails.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let numbers = bench.options.open_runs.iter();
    let stages = numbers.map(|open_runs| Stage::open(bench, *open_runs));
    let mut stages = stages.collect::<Result<Vec<Stage>>>()?;
    for stage in &stages {
        merging::wait_until_done(&stage.cluster, bench.interrupt())?;
    }
    for round in 1..=ROUNDS {
        say(format!("round {round} of {ROUNDS}"));
        for stage in &mut stages {
            stage.loads.steps.add(stage.put(bench, Load::steps())?);
        }
        for stage in &mut stages {
            stage.loads.start.add(stage.put(bench, Load::start())?);
        }
    }
    let measured = stages.iter_mut().map(|stage| stage.finish(bench));
    let measured = measured.collect::<Result<Vec<Measured>>>()?;
    for stage in stages {
        bench.stop_beside(&name(stage.open_runs), stage.cluster)?;
    }
    section(bench, &measured)
}

fn section(bench: &Bench<'_>, measured: &[Measured]) -> Result<Section> {
    let reports = measured
        .iter()
        .flat_map(|measured| [measured.loads.steps.median(), measured.loads.start.median()]);
    let title = [
        "--x",
        "waiting_runs",
        "--title",
        "By the number of open runs",
    ];
    let drawn = bench.plot("open-runs", &title, reports)?;
    let section = Section::default()
        .paragraph(format!(
            "`flo bench parked` opened the waiting runs, each number of runs on a separate cluster. All clusters were \
             up at the same time; while one was measured, the others were idle. Once all compactions were done, \
             {CLIENTS} clients ran whole runs of three steps and starts, on each cluster in turn, in {ROUNDS} \
             rounds. The table shows the round with the median throughput; \"of first\" is the ratio to the first \
             row, followed by the same ratio for each round."
        ))
        .table(&tables::loads(measured))
        .paragraph(
            "After those loads, whose ended runs are kept for an hour (those that ended during warm-ups are not \
             counted): memory and data directory of each node, the leader's first; the time from the start of a \
             killed follower (SIGKILL) until it was ready; and a snapshot of the leader, which shares files with its \
             state as far as possible. Then whole runs by the same number of clients, while the nodes made one \
             snapshot after another without a pause.",
        )
        .table(&tables::state(measured));
    Ok(section.figure("Throughput and latency by the number of open runs", drawn))
}

/// The name of the cluster with this many open runs.
fn name(open_runs: u64) -> String {
    format!("open-{open_runs}")
}

impl Stage {
    /// Starts a cluster and opens the runs.
    fn open(bench: &Bench<'_>, open_runs: u64) -> Result<Self> {
        let cluster = bench.start_beside(&name(open_runs))?;
        if open_runs > 0 {
            say(format!("opening runs, until {open_runs} wait"));
            let load = Load::parked()
                .with("--runs", open_runs)
                .with("--clients", CLIENTS_OPENING);
            let limit = Duration::from_secs(open_runs / OPENED_PER_SECOND_MIN);
            bench.fill(&cluster, &load, limit)?;
        }
        Ok(Self {
            open_runs,
            cluster,
            loads: Loads::default(),
        })
    }

    /// Puts a load on it.
    fn put(&self, bench: &Bench<'_>, load: Load) -> Result<Report> {
        bench.measure(&self.cluster, &self.load(load))
    }

    /// Measures what is measured once, after the loads.
    fn finish(&mut self, bench: &Bench<'_>) -> Result<Measured> {
        let interrupt = bench.interrupt();
        say(format!("with {} runs waiting", self.open_runs));
        let restart = readiness::time_of_restart(&mut self.cluster, interrupt)?;
        say(format!(
            "a node that was killed: ready after {} s",
            seconds(restart)
        ));

        let leader = self.cluster.wait_for_leader(None, interrupt)?.node_id;
        let snapshot = Snapshot::make(&self.cluster, leader)?;
        say(format!("a snapshot: {} s", seconds(snapshot.took)));
        let (beside_snapshots, snapshots) = self.put_beside_snapshots(bench, Load::steps())?;
        Ok(Measured {
            open_runs: self.open_runs,
            loads: mem::take(&mut self.loads),
            restart,
            snapshot,
            beside_snapshots,
            snapshots,
        })
    }

    /// Puts a load on it, and says how many snapshots its nodes made meanwhile.
    fn put_beside_snapshots(&self, bench: &Bench<'_>, load: Load) -> Result<(Report, u32)> {
        let node_ids: Vec<NodeId> = self.cluster.node_ids().collect();
        let mut turn = node_ids.iter().cycle();
        let mut snapshots = 0;
        let report = bench.measure_beside(&self.cluster, &self.load(load), || {
            if let Some(node_id) = turn.next() {
                snapshot::make(&self.cluster, *node_id)?;
                snapshots += 1;
            }
            Ok(())
        })?;
        say(format!("while {snapshots} snapshots were made"));
        Ok((report, snapshots))
    }

    fn load(&self, load: Load) -> Load {
        load.with("--clients", CLIENTS)
            .labeled("waiting_runs", self.open_runs)
    }
}
