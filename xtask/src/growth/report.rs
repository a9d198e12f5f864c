//! What `flo bench` reported.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

use crate::client::{figure, list, number, text};

/// The figures of one load.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Report {
    /// Where it is saved as it was printed, to be drawn.
    pub(super) file: PathBuf,
    /// `start`, `steps` or `parked`.
    pub(super) workload: String,
    /// How many were under way at a time; with a rate, at most.
    pub(super) clients: u64,
    /// How many were to begin a second, if that was given.
    pub(super) rate_wanted: Option<u64>,
    /// What was done in a second.
    pub(super) rate: f64,
    /// What a piece of work took.
    pub(super) latency: Latency,
    /// From the end of a step's handler to the call of the next one's, where there are steps.
    pub(super) transition: Option<Latency>,
    /// How much was done while it was measured.
    pub(super) completed: u64,
    /// How many failed.
    pub(super) errors: u64,
    /// How many were due and had not begun at the end.
    pub(super) not_begun: u64,
    /// The nodes that answered, the leader first.
    pub(super) nodes: Vec<Node>,
}

/// How long something took, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latency {
    /// The median.
    pub(super) p50_ms: f64,
    /// What one in a hundred exceeds.
    pub(super) p99_ms: f64,
}

/// What a load has cost a node. What the node does not know is absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Node {
    /// Of one core.
    pub(super) processor_percent: Option<f64>,
    /// Its memory at the end.
    pub(super) resident_bytes: Option<u64>,
    /// What it wrote to its disks.
    pub(super) written_bytes_per_run: Option<f64>,
    /// What its data directory takes at the end.
    pub(super) data_bytes: Option<u64>,
}

impl Report {
    /// Reads what was printed and is saved in the file.
    ///
    /// # Errors
    /// If it lacks something.
    pub(super) fn read(object: &Value, file: PathBuf) -> Result<Self> {
        let mut stages = list(object, "stages")?.iter();
        let transition = stages.find(|stage| stage["name"] == "transition");
        let mut nodes: Vec<&Value> = list(object, "nodes")?.iter().collect();
        nodes.retain(|node| node["answered"] == true);
        nodes.sort_by_key(|node| node["is_leader"] != true);
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
            not_begun: number(object, "not_begun")?,
            nodes: nodes.into_iter().map(Node::read).collect(),
        })
    }
}

impl Latency {
    /// How many times the median the p99 is.
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

    /// As `flo bench steps -o json` prints it, with what is not read left out.
    pub(in super::super) fn printed() -> Value {
        let node = |node_id: u64, is_leader: bool| {
            json!({
                "node_id": node_id, "is_leader": is_leader, "answered": true, "cpu_percent": 43.7,
                "resident_bytes": 104_857_600 + node_id * 1_048_576, "written_bytes_per_run": 3312.4,
                "data_bytes": 52_428_800,
            })
        };
        let gone = json!({
            "node_id": 3, "is_leader": false, "answered": false, "cpu_percent": null, "resident_bytes": null,
            "written_bytes_per_run": null, "data_bytes": null,
        });
        json!({
            "workload": "steps", "labels": {}, "clients": 64, "rate": null, "completed": 4_000, "errors": 0,
            "not_begun": 0, "runs_per_s": 999.75, "p50_ms": 50.0, "p99_ms": 80.0,
            "stages": [{"name": "transition", "p50_ms": 12.5, "p99_ms": 25.0}],
            "nodes": [node(1, false), node(2, true), gone],
        })
    }

    /// Such a report with another rate and other latencies.
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
