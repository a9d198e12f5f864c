//! The figures of a measurement, as they are printed, saved and drawn.

mod latency;
mod nodes;
#[cfg(test)]
mod tests;
mod text;

use super::load::{LoadFlags, Measured, Pace};
use super::measurement::Look;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) use latency::Latency;
use nodes::{Cluster, Node};

/// What was measured, apart from the load.
#[derive(Debug)]
pub(super) struct Conditions {
    /// The workload's name.
    pub(super) workload: &'static str,
    /// The unit that is counted, such as `runs`.
    pub(super) unit: &'static str,
    /// What the latencies measure.
    pub(super) latency_of: &'static str,
    /// The steps of each run, if steps are counted.
    pub(super) steps_per_run: Option<u32>,
    /// The size of the inputs in bytes, if it is configurable.
    pub(super) payload_bytes: Option<u32>,
    /// The number of runs left open at the end, if the workload is about them.
    pub(super) open_runs: Option<u64>,
    /// The labels given on the command line.
    pub(super) labels: BTreeMap<String, String>,
}

/// The report. Unknown values are absent, including those that a report saved by an earlier version
/// lacks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// The workload's name.
    pub(super) workload: String,
    /// The labels given on the command line.
    pub(super) labels: BTreeMap<String, String>,
    /// The version of this `flo`, which may differ from that of the nodes.
    flo_version: Option<String>,
    /// When the measurement began, by this machine's clock.
    started_at_ms: Option<u64>,
    /// The unit that is counted, such as `runs`.
    pub(super) unit: String,
    clients: u16,
    connections: u16,
    /// The offered rate per second; absent in a closed loop.
    rate: Option<u32>,
    payload_bytes: Option<u32>,
    steps_per_run: Option<u32>,
    open_runs: Option<u64>,
    /// The length of the warm-up before the measurement, in seconds.
    warm_up_seconds: Option<u64>,
    /// The length of the measurement, in seconds.
    seconds: f64,
    /// Whether a signal ended it early.
    interrupted: Option<bool>,
    completed: u64,
    errors: u64,
    /// The first error.
    pub(super) error: Option<String>,
    /// Operations that were due but had not begun when the load ended.
    not_started: u64,
    pub(super) runs_per_s: f64,
    steps_per_s: Option<f64>,
    /// What the latencies measure.
    pub(super) latency_of: String,
    #[serde(flatten)]
    pub(super) latency: Latency,
    /// The stages of the work that were measured separately and occurred.
    pub(super) stages: Vec<Stage>,
    #[serde(flatten)]
    cluster: Cluster,
    /// The share of one core that the bench itself used.
    bench_cpu_percent: Option<f64>,
    nodes: Vec<Node>,
    /// Completed operations in each second.
    pub(super) per_second: Vec<u64>,
}

/// A separately measured part of the work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stage {
    /// Its name.
    pub(super) name: String,
    /// How long it took.
    #[serde(flatten)]
    pub(super) latency: Latency,
}

impl Conditions {
    /// The workload, its unit and what its latencies measure.
    pub(super) fn new(
        workload: &'static str,
        unit: &'static str,
        latency_of: &'static str,
    ) -> Self {
        Self {
            workload,
            unit,
            latency_of,
            steps_per_run: None,
            payload_bytes: None,
            open_runs: None,
            labels: BTreeMap::new(),
        }
    }
}

impl Report {
    /// Computes the figures from the samples taken at the start and the end.
    pub(super) fn new(
        flags: &LoadFlags,
        conditions: Conditions,
        measured: &Measured,
        [before, after]: &[Look; 2],
    ) -> Self {
        let seconds = measured.elapsed.as_secs_f64();
        let runs_per_s = per(float(measured.completed), seconds);
        let nodes = Node::all(&before.nodes, &after.nodes, measured.completed);
        let stages = measured.stages.iter();
        let stages = stages.filter(|(_, latencies)| !latencies.is_empty());
        let stages = stages.map(|(name, latencies)| Stage {
            name: (*name).to_owned(),
            latency: Latency::new(latencies),
        });
        Self {
            workload: conditions.workload.to_owned(),
            labels: conditions.labels,
            flo_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            started_at_ms: Some(before.at_ms),
            unit: conditions.unit.to_owned(),
            clients: flags.clients(),
            connections: flags.connections(),
            rate: match flags.pace() {
                Pace::Closed => None,
                Pace::Open(rate) => Some(rate),
            },
            payload_bytes: conditions.payload_bytes,
            steps_per_run: conditions.steps_per_run,
            open_runs: conditions.open_runs,
            warm_up_seconds: Some(flags.warm_up().as_secs()),
            seconds: rounded(seconds),
            interrupted: Some(measured.is_stopped),
            completed: measured.completed,
            errors: measured.errors,
            error: None,
            not_started: measured.not_started,
            runs_per_s: rounded(runs_per_s),
            steps_per_s: conditions
                .steps_per_run
                .map(|steps| rounded(runs_per_s * f64::from(steps))),
            latency_of: conditions.latency_of.to_owned(),
            latency: Latency::new(&measured.latencies),
            stages: stages.collect(),
            cluster: Cluster::new(&before.nodes, &after.nodes),
            bench_cpu_percent: after.own_cpu_percent(before).map(rounded),
            nodes,
            per_second: measured.per_second(),
        }
    }

    /// The title of its figure.
    pub(super) fn title(&self) -> String {
        let pace = match self.rate {
            Some(rate) => format!("{rate} a second"),
            None => format!("{} clients", self.clients),
        };
        format!(
            "flo bench {}, {pace}: {} {}/s",
            self.workload, self.runs_per_s, self.unit
        )
    }
}

/// A ratio; 0 when the divisor is 0.
fn per(count: f64, of: f64) -> f64 {
    if of > 0.0 { count / of } else { 0.0 }
}

/// Rounded to two decimal places.
fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

/// Figures of a measurement stay far below 2^53, up to which this is exact.
#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
