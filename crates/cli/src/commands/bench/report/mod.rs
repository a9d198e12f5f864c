//! The figures of a measurement: what is printed, saved and drawn.

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

/// What was measured, beside the load that it was measured with.
#[derive(Debug)]
pub(super) struct Conditions {
    /// The workload.
    pub(super) workload: &'static str,
    /// What is counted, as `runs`.
    pub(super) unit: &'static str,
    /// What the latencies are of.
    pub(super) latency_of: &'static str,
    /// How many steps a run has, where steps are counted.
    pub(super) steps_per_run: Option<u16>,
    /// How large the inputs are, where that can be chosen. In bytes.
    pub(super) payload_bytes: Option<u32>,
    /// How many runs are open at the end, where that is what it is about.
    pub(super) open_runs: Option<u64>,
}

/// The figures. What is not known is absent, also what a report that was saved by an earlier version does not say.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// The workload.
    pub(super) workload: String,
    /// What else was said of it.
    pub(super) labels: BTreeMap<String, String>,
    /// The version of this `flo`, which need not be that of the nodes.
    flo_version: Option<String>,
    /// When the measurement began, by this machine's clock.
    began_at_ms: Option<u64>,
    /// What is counted, as `runs`.
    pub(super) unit: String,
    clients: u16,
    connections: u16,
    /// How many were to begin a second; none where each waited for one before.
    rate: Option<u32>,
    payload_bytes: Option<u32>,
    steps_per_run: Option<u16>,
    open_runs: Option<u64>,
    /// For how long the load was on before, in seconds.
    warm_up_seconds: Option<u64>,
    /// For how long it was measured.
    seconds: f64,
    /// Whether a signal ended it early.
    is_stopped: Option<bool>,
    completed: u64,
    errors: u64,
    /// The first of them.
    pub(super) error: Option<String>,
    /// How many were due and had not begun when the load ended.
    not_begun: u64,
    pub(super) runs_per_s: f64,
    steps_per_s: Option<f64>,
    /// What the latencies are of.
    pub(super) latency_of: String,
    #[serde(flatten)]
    pub(super) latency: Latency,
    /// Parts of the work that were measured on their own, and came to pass.
    pub(super) stages: Vec<Stage>,
    #[serde(flatten)]
    cluster: Cluster,
    /// What share of a core the bench itself used.
    bench_cpu_percent: Option<f64>,
    nodes: Vec<Node>,
    /// How much was done in each second.
    pub(super) per_second: Vec<u64>,
}

/// A part of the work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stage {
    /// What it is called.
    pub(super) name: String,
    /// How long it took.
    #[serde(flatten)]
    pub(super) latency: Latency,
}

impl Conditions {
    /// A workload, what it counts, and what its latencies are of.
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
        }
    }
}

impl Report {
    /// Works the figures out, from what was measured between two looks.
    pub(super) fn new(
        (flags, conditions, labels): (&LoadFlags, Conditions, BTreeMap<String, String>),
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
            labels,
            flo_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            began_at_ms: Some(before.at_ms),
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
            is_stopped: Some(measured.is_stopped),
            completed: measured.completed,
            errors: measured.errors,
            error: None,
            not_begun: measured.not_begun,
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

    /// What a figure of it is called.
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

/// A count for each of something; nothing for each of nothing.
fn per(count: f64, of: f64) -> f64 {
    if of > 0.0 { count / of } else { 0.0 }
}

/// Two digits after the point.
fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

/// Figures of a measurement stay far below 2^53, up to which this is exact.
#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
