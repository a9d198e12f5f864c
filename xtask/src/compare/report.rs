//! The report of one load.

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::{figure, number};

/// The figures of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    /// Operations per second.
    pub(super) rate: f64,
    /// The median latency, in milliseconds.
    pub(super) p50_ms: f64,
    /// The 99th percentile of the latency, in milliseconds.
    pub(super) p99_ms: f64,
    /// How many operations succeeded.
    pub(super) completed: u64,
    /// How many failed.
    pub(super) errors: u64,
}

impl Report {
    /// Reads a report of `flo bench` or `flotilla-peers`.
    ///
    /// # Errors
    /// If it lacks a figure.
    pub(super) fn read(report: &Value) -> Result<Self> {
        Ok(Self {
            rate: figure(report, "runs_per_s")?,
            p50_ms: figure(report, "p50_ms")?,
            p99_ms: figure(report, "p99_ms")?,
            completed: number(report, "completed")?,
            errors: number(report, "errors")?,
        })
    }

    /// The same fields as JSON.
    pub(super) fn json(&self) -> Value {
        json!({
            "runs_per_s": self.rate,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "completed": self.completed,
            "errors": self.errors,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_its_figures() {
        let report = json!({
            "runs_per_s": 1163.25, "p50_ms": 54.1, "p99_ms": 90, "max_ms": 99, "completed": 11632, "errors": 2,
        });
        let report = Report::read(&report).unwrap();
        let expected = Report {
            rate: 1163.25,
            p50_ms: 54.1,
            p99_ms: 90.0,
            completed: 11_632,
            errors: 2,
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn a_report_without_a_figure_is_refused() {
        let report = json!({"runs_per_s": 1, "p50_ms": 1});
        let error = Report::read(&report).unwrap_err();
        assert!(error.to_string().contains("`p99_ms`"), "{error}");
    }
}
