//! The reports of `flo bench`.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

use crate::client::{figure, list, number, text};

/// The figures of one load.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    /// The file of the saved report, from which figures are drawn.
    pub(super) file: PathBuf,
    /// `start`, `steps` or `parked`.
    pub(super) workload: String,
    /// How many operations were in flight at a time; with a rate, the maximum.
    pub(super) clients: u64,
    /// How many operations were to begin per second, if a rate was given.
    pub(super) rate_wanted: Option<u64>,
    /// Operations per second.
    pub(super) rate: f64,
    /// The latency of an operation.
    pub(super) latency: Latency,
    /// From the end of a step's handler to the start of the next one's, if there are steps.
    pub(super) transition: Option<Latency>,
    /// How many operations were measured.
    pub(super) completed: u64,
    /// How many failed.
    pub(super) errors: u64,
    /// How many operations were due and had not begun at the end.
    pub(super) not_started: u64,
    /// The nodes that answered, leader first.
    pub(super) nodes: Vec<Node>,
}

/// A latency, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latency {
    /// The median.
    pub(super) p50_ms: f64,
    /// The 99th percentile.
    pub(super) p99_ms: f64,
}

/// The cost of a load to a node. A figure that the node does not know is absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Node {
    /// CPU time, in percent of one core.
    pub(super) processor_percent: Option<f64>,
    /// Its memory at the end.
    pub(super) resident_bytes: Option<u64>,
    /// The bytes that it wrote to its disks.
    pub(super) written_bytes_per_run: Option<f64>,
    /// The size of its data directory at the end.
    pub(super) data_bytes: Option<u64>,
}

impl Report {
    /// Reads a report as printed and saved in the file.
    ///
    /// # Errors
    /// If a field is missing.
    pub(super) fn read(object: &Value, file: PathBuf) -> Result<Self> {
        let mut stages = list(object, "stages")?.iter();
        let transition = stages.find(|stage| stage["name"] == "transition");
        let mut nodes: Vec<&Value> = list(object, "nodes")?.iter().collect();
        nodes.retain(|node| node["responded"] == true);
        nodes.sort_by_key(|node| node["leader"] != true);
        Ok(Self {
            file,
            workload: text(object, "workload")?.to_owned(),
            clients: number(object, "clients")?,
            rate_wanted: object["rate"].as_u64(),
            rate: figure(object, "runs_per_s")?,
            latency: Latency::read(object)?,
            transition: transition.map(Latency::read).transpose()?,
            completed: number(object, "completed")?,
            errors: number(object, "errors")?,
            not_started: number(object, "not_started")?,
            nodes: nodes.into_iter().map(Node::read).collect(),
        })
    }
}

impl Latency {
    /// The p99 divided by the median.
    pub(super) fn spread(self) -> f64 {
        self.p99_ms / self.p50_ms
    }

    fn read(object: &Value) -> Result<Self> {
        Ok(Self {
            p50_ms: figure(object, "p50_ms")?,
            p99_ms: figure(object, "p99_ms")?,
        })
    }
}

impl Node {
    fn read(object: &Value) -> Self {
        Self {
            processor_percent: object["cpu_percent"].as_f64(),
            resident_bytes: object["resident_bytes"].as_u64(),
            written_bytes_per_run: object["written_bytes_per_run"].as_f64(),
            data_bytes: object["data_bytes"].as_u64(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// As `flo bench steps -o json` prints it, without the fields that are not read.
    pub(in super::super) fn printed() -> Value {
        let node = |node_id: u64, is_leader: bool| {
            json!({
                "node_id": node_id, "leader": is_leader, "responded": true, "cpu_percent": 43.7,
                "resident_bytes": 104_857_600 + node_id * 1_048_576, "written_bytes_per_run": 3312.4,
                "data_bytes": 52_428_800,
            })
        };
        let gone = json!({
            "node_id": 3, "leader": false, "responded": false, "cpu_percent": null, "resident_bytes": null,
            "written_bytes_per_run": null, "data_bytes": null,
        });
        json!({
            "workload": "steps", "labels": {}, "clients": 64, "rate": null, "completed": 4_000, "errors": 0,
            "not_started": 0, "runs_per_s": 999.75, "p50_ms": 50.0, "p99_ms": 80.0,
            "stages": [{"name": "transition", "p50_ms": 12.5, "p99_ms": 25.0}],
            "nodes": [node(1, false), node(2, true), gone],
        })
    }

    /// The same report with another rate and other latencies.
    pub(in super::super) fn report(workload: &str, rate: f64, p50_ms: f64) -> Report {
        let mut printed = printed();
        printed["workload"] = json!(workload);
        printed["runs_per_s"] = json!(rate);
        printed["p50_ms"] = json!(p50_ms);
        printed["p99_ms"] = json!(2.0 * p50_ms);
        if workload == "start" {
            printed["stages"] = json!([]);
        }
        Report::read(&printed, PathBuf::from("1.json")).unwrap()
    }

    #[test]
    fn a_report_has_its_latencies_and_the_nodes_that_answered() {
        let report = Report::read(&printed(), PathBuf::from("1.json")).unwrap();
        assert_eq!(report.clients, 64);
        assert_eq!(report.rate_wanted, None);
        let transition = report.transition.unwrap();
        assert!((transition.spread() - 2.0).abs() < 1e-9);
        let memory: Vec<_> = report.nodes.iter().map(|it| it.resident_bytes).collect();
        assert_eq!(memory, [Some(106_954_752), Some(105_906_176)]);
    }

    #[test]
    fn a_workload_without_steps_has_no_transitions() {
        assert_eq!(report("start", 9_000.0, 6.0).transition, None);
    }

    #[test]
    fn a_report_that_lacks_a_figure_is_refused_by_its_name() {
        let mut printed = printed();
        printed["p99_ms"] = Value::Null;
        let error = Report::read(&printed, PathBuf::new()).unwrap_err();
        assert!(error.to_string().contains("`p99_ms`"), "{error}");
    }
}
