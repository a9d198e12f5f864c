//! The report as text, for people.

use super::{Latency, Node, Report};
use crate::output::{Row, table};
use crate::views::bytes;
use serde::Serialize;

/// A row of the table of latencies.
#[derive(Serialize)]
struct LatencyRow<'a> {
    of: &'a str,
    latency: &'a Latency,
}

/// A row of the table of nodes.
#[derive(Serialize)]
struct NodeRow<'a>(&'a Node);

impl Report {
    /// The report as text: a sentence and two tables.
    pub(in super::super) fn text(&self) -> String {
        if let (Some(open), 0, 0) = (self.open_runs, self.completed, self.errors) {
            return format!(
                "{}: {open} are already open, so there was nothing to do",
                self.workload
            );
        }
        let mut text = self.summary();
        let stages = self.stages.iter();
        let stages = stages.map(|stage| (&stage.name, &stage.latency));
        let latencies = [(&self.latency_of, &self.latency)]
            .into_iter()
            .chain(stages);
        let latencies: Vec<_> = latencies
            .map(|(of, latency)| LatencyRow { of, latency })
            .collect();
        text.push_str(&format!("\n\n{}", table(&latencies)));
        if !self.nodes.is_empty() {
            let nodes: Vec<_> = self.nodes.iter().map(NodeRow).collect();
            text.push_str(&format!("\n\n{}\n{}", table(&nodes), self.log()));
        }
        if let Some(previous_leader_id) = self.cluster.previous_leader_id {
            text.push_str(&format!(
                "\n\nnode {previous_leader_id} led at the start and another one at the end, so the leader's rates are unknown"
            ));
        }
        if let Some(error) = &self.error {
            text.push_str(&format!(
                "\n\nfailed operations are not among the latencies above; the first error: {error}"
            ));
        }
        if self.not_started > 0 {
            text.push_str(&format!(
"\n\nthe rate was not kept: {} operations were due but had not begun at the end, and the latencies above do \
                 not include them; either the cluster cannot keep this rate, or --clients {} is too low",
                self.not_started, self.clients
            ));
        }
        text
    }

    fn summary(&self) -> String {
        let Self {
            workload,
            unit,
            clients,
            completed,
            seconds,
            errors,
            ..
        } = self;
        let pace = match self.rate {
            Some(rate) => format!("at {rate}/s, at most {clients} in flight"),
            None => format!("by {clients} clients"),
        };
        let steps = self
            .steps_per_s
            .map_or(String::new(), |steps| format!(", {steps} steps/s"));
        let open = self
            .open_runs
            .map_or(String::new(), |open| format!(", {open} open now"));
        let stopped = match self.interrupted {
            Some(true) => ", stopped early",
            Some(false) | None => "",
        };
        format!(
            "{workload}: {} {unit}/s{steps} ({completed} in {seconds} s {pace}, {errors} errors{open}{stopped})",
            self.runs_per_s
        )
    }

    /// The work of the log, and the CPU that the bench used on its machine.
    fn log(&self) -> String {
        let cluster = &self.cluster;
        format!(
            "\n{} commands per entry, {} entries/s, {} fsyncs/s by the leader; the bench itself took {} of a core",
            or_dash(cluster.commands_per_entry),
            or_dash(cluster.entries_per_s),
            or_dash(cluster.fsyncs_per_s),
            percent(self.bench_cpu_percent)
        )
    }
}

impl Row for LatencyRow<'_> {
    const HEADINGS: &'static [&'static str] =
        &["LATENCY, MS", "COUNT", "P50", "P95", "P99", "P99.9", "MAX"];

    fn cells(&self) -> Vec<String> {
        let latency = self.latency;
        let quantiles = [
            latency.p50_ms,
            latency.p95_ms,
            latency.p99_ms,
            latency.p999_ms,
            latency.max_ms,
        ];
        [self.of.to_owned(), latency.count.to_string()]
            .into_iter()
            .chain(quantiles.map(or_dash))
            .collect()
    }
}

impl Row for NodeRow<'_> {
    const HEADINGS: &'static [&'static str] = &[
        "NODE",
        "ROLE",
        "CPU",
        "MEMORY",
        "WRITTEN/RUN",
        "LOG/RUN",
        "FSYNCS/S",
        "APPLIED/S",
        "DISK",
    ];

    fn cells(&self) -> Vec<String> {
        let Self(node) = self;
        let role = match (node.responded, node.leader) {
            (false, _) => "did not answer",
            (true, true) => "leader",
            (true, false) => "follower",
        };
        let size = |size: Option<u64>| size.map_or("-".to_owned(), bytes);
        let share =
            |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{share:.0} B"));
        vec![
            node.node_id.to_string(),
            role.to_owned(),
            percent(node.cpu_percent),
            size(node.resident_bytes),
            share(node.written_bytes_per_run),
            share(node.log_bytes_per_run),
            or_dash(node.fsyncs_per_s),
            or_dash(node.entries_applied_per_s),
            size(node.data_bytes),
        ]
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{share:.0} %"))
}

fn or_dash(figure: Option<f64>) -> String {
    figure.map_or("-".to_owned(), |figure| figure.to_string())
}
