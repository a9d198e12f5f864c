//! More and more runs that wait, on one cluster.

mod tables;

use std::time::Duration;

use anyhow::Result;

use super::bench::Bench;
use super::load::Load;
use super::readiness;
use super::report::Report;
use super::section::Section;
use super::show::seconds;
use super::snapshot::{self, Snapshot};
use crate::cluster::{Cluster, NodeId};
use crate::stages::say;

/// How many clients there are, whatever else differs.
const CLIENTS: u16 = 64;

/// How many clients open runs.
const CLIENTS_OPENING: u16 = 128;

/// How many runs are opened a second, at the very least.
const OPENED_PER_SECOND_MIN: u64 = 100;

/// What was measured with so many runs waiting.
struct Stage {
    open_runs: u64,
    steps: Report,
    start: Report,
    /// How long a node that was killed took until it served again.
    restart: Duration,
    snapshot: Snapshot,
    /// Whole runs while nodes made snapshots.
    beside_snapshots: Report,
    /// How many snapshots that were.
    snapshots: u32,
}

/// Measures a cluster on which more and more runs wait.
///
/// # Errors
/// If it does not start or serve, or a load fails.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut cluster = bench.start()?;
    let mut stages = Vec::new();
    for open_runs in &bench.options.open_runs {
        open(bench, &cluster, *open_runs)?;
        stages.push(Stage::measure(bench, &mut cluster, *open_runs)?);
    }
    cluster.stop(bench.interrupt())?;
    let reports = stages.iter().flat_map(|stage| [&stage.steps, &stage.start]);
    let title = ["--x", "open_runs", "--title", "By the number of open runs"];
    let drawn = bench.plot("open-runs", &title, reports)?;
    let section = Section::default()
        .paragraph(format!(
            "`flo bench parked` opened runs that wait, on one cluster that was never emptied. Beside them {CLIENTS} \
             clients ran whole runs of three steps and starts. \"Of first\" is how many times the first row's figure \
             it is: sizes cannot be measured in turn."
        ))
        .table(&tables::loads(&stages))
        .paragraph(
            "After those loads, whose ended runs stay for an hour (what ended in warm-ups is not counted): memory and \
             data directory of each node, the leader's first; the time from the start of a follower that was killed \
             (SIGKILL) until it was ready; and a snapshot of the leader, whose files are shared with its state as far \
             as they can be. Then whole runs by as many clients, while the nodes made snapshots one after another \
             without a pause.",
        )
        .table(&tables::state(&stages));
    Ok(section.figure("Throughput and latency by the number of open runs", drawn))
}

/// Opens what is missing.
fn open(bench: &Bench<'_>, cluster: &Cluster, open_runs: u64) -> Result<()> {
    if open_runs == 0 {
        return Ok(());
    }
    say(format!("opening runs, until {open_runs} wait"));
    let load = Load::parked()
        .with("--runs", open_runs)
        .with("--clients", CLIENTS_OPENING);
    let limit = Duration::from_secs(open_runs / OPENED_PER_SECOND_MIN);
    bench.fill(cluster, &load, limit)?;
    Ok(())
}

impl Stage {
    fn measure(bench: &Bench<'_>, cluster: &mut Cluster, open_runs: u64) -> Result<Self> {
        let interrupt = bench.interrupt();
        let with = |load: Load| {
            load.with("--clients", CLIENTS)
                .labelled("open_runs", open_runs)
        };
        let steps = bench.measure(cluster, &with(Load::steps()))?;
        let start = bench.measure(cluster, &with(Load::start()))?;

        let restart = readiness::time_of_restart(cluster, interrupt)?;
        say(format!(
            "a node that was killed: ready after {} s",
            seconds(restart)
        ));

        let leader = cluster.wait_for_leader(None, interrupt)?.node_id;
        let snapshot = Snapshot::make(cluster, leader)?;
        say(format!("a snapshot: {} s", seconds(snapshot.took)));
        let (beside_snapshots, snapshots) =
            measure_beside_snapshots(bench, cluster, &with(Load::steps()))?;
        Ok(Self {
            open_runs,
            steps,
            start,
            restart,
            snapshot,
            beside_snapshots,
            snapshots,
        })
    }
}

/// A load, and how many snapshots the nodes made meanwhile.
fn measure_beside_snapshots(
    bench: &Bench<'_>,
    cluster: &Cluster,
    load: &Load,
) -> Result<(Report, u32)> {
    let node_ids: Vec<NodeId> = cluster.node_ids().collect();
    let mut turn = node_ids.iter().cycle();
    let mut snapshots = 0;
    let report = bench.measure_beside(cluster, load, || {
        if let Some(node_id) = turn.next() {
            snapshot::make(cluster, *node_id)?;
            snapshots += 1;
        }
        Ok(())
    })?;
    say(format!("while {snapshots} snapshots were made"));
    Ok((report, snapshots))
}
