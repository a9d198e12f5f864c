//! What one load printed.

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use crate::client::number;

/// The figures of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    /// What was done in a second.
    pub(super) rate: f64,
    /// The median latency, in milliseconds.
    pub(super) p50_ms: f64,
    /// The latency of one in a hundred, in milliseconds.
    pub(super) p99_ms: f64,
    /// How many were done.
    pub(super) completed: u64,
    /// How many failed.
    pub(super) errors: u64,
}

impl Report {
    /// Reads the last report in the output of `flo bench` or `flotilla-peers`.
    ///
    /// # Errors
    /// If there is none, or it lacks a figure.
    pub(super) fn read(output: &str) -> Result<Self> {
        let objects = output
            .lines()
            .rev()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut reports = objects.filter(|object| object["runs_per_s"].is_number());
        let report = reports
            .next()
            .context("expected a report, but there is none in the output")?;
        Ok(Self {
            rate: figure(&report, "runs_per_s")?,
            p50_ms: figure(&report, "p50_ms")?,
            p99_ms: figure(&report, "p99_ms")?,
            completed: number(&report, "completed")?,
            errors: number(&report, "errors")?,
        })
    }

    /// The same names again.
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

fn figure(object: &Value, field: &str) -> Result<f64> {
    object[field]
        .as_f64()
        .ok_or_else(|| anyhow!("expected a figure `{field}`, but there is none in {object}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_counts_and_other_lines_do_not() {
        let output = "\
64 clients for 10 s
{\"runs_per_s\":1,\"p50_ms\":1,\"p99_ms\":1,\"completed\":1,\"errors\":0}
{\"runs_per_s\":1163.25,\"p50_ms\":54.1,\"p99_ms\":90,\"completed\":11632,\"errors\":2,\"max_ms\":99}
{\"error\":{\"code\":\"timeout\"}}
";
        let report = Report::read(output).unwrap();
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
    fn an_output_without_a_report_is_no_success() {
        assert!(Report::read("").is_err());
        let error = Report::read("{\"runs_per_s\":1,\"p50_ms\":1}").unwrap_err();
        assert!(error.to_string().contains("`p99_ms`"), "{error}");
    }
}
