//! The output of a load: the same field names as in the report of `flo bench`.

use crate::fault::Fault;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// Longer latencies count as this: an hour.
const LATENCY_MAX_MICROSECONDS: u64 = 3_600_000_000;
/// Latencies keep three significant digits.
const DIGITS: u8 = 3;

/// The measurements of a load.
#[derive(Debug)]
pub(crate) struct Measured {
    /// In microseconds, one for each call that succeeded and began after the warm-up.
    pub(crate) latencies: Histogram<u64>,
    /// How many calls succeeded, those of the warm-up too.
    pub(crate) succeeded: u64,
    /// How many calls failed, those of the warm-up too.
    pub(crate) errors: u64,
    /// One of the errors.
    pub(crate) error: Option<Fault>,
    /// From the end of the warm-up to the last response.
    pub(crate) elapsed: Duration,
}

/// The figures of a load.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    workload: &'static str,
    clients: usize,
    seconds: f64,
    completed: u64,
    /// How many results were verified, see `verified_by`.
    verified: u64,
    verified_by: &'static str,
    errors: u64,
    error: Option<String>,
    runs_per_s: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

/// How many results were verified, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verified {
    /// How many, those of the warm-up too.
    pub(crate) count: u64,
    /// The method, as text.
    pub(crate) by: &'static str,
}

impl Measured {
    /// An empty measurement.
    pub(crate) fn nothing() -> Self {
        Self {
            latencies: Histogram::new_with_max(LATENCY_MAX_MICROSECONDS, DIGITS)
                .expect("three digits are at most five, and an hour is more than two"),
            succeeded: 0,
            errors: 0,
            error: None,
            elapsed: Duration::ZERO,
        }
    }

    /// Records the latency of a call.
    pub(crate) fn record(&mut self, latency: Duration) {
        let latency = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latencies.saturating_record(latency);
    }

    /// Records a failed call.
    pub(crate) fn fail(&mut self, fault: Fault) {
        self.errors += 1;
        self.error.get_or_insert(fault);
    }

    /// Adds the measurements of another client.
    pub(crate) fn add(&mut self, other: Self) {
        self.latencies += other.latencies;
        self.succeeded += other.succeeded;
        self.errors += other.errors;
        self.error = self.error.take().or(other.error);
    }
}

impl Report {
    /// Computes the figures.
    pub(crate) fn new(
        workload: &'static str,
        clients: usize,
        measured: &Measured,
        verified: Verified,
    ) -> Self {
        let seconds = measured.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let latencies = &measured.latencies;
        let quantile = |quantile| milliseconds(latencies.value_at_quantile(quantile));
        Self {
            workload,
            clients,
            seconds: rounded(seconds),
            completed: latencies.len(),
            verified: verified.count,
            verified_by: verified.by,
            errors: measured.errors,
            error: measured.error.as_ref().map(ToString::to_string),
            runs_per_s: rounded(float(latencies.len()) / seconds),
            p50_ms: quantile(0.50),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
            max_ms: milliseconds(latencies.max()),
        }
    }

    /// Prints it.
    ///
    /// # Errors
    /// If nothing succeeded.
    pub(crate) fn print(&self) -> Result<(), Fault> {
        println!("{}", serde_json::to_string(self)?);
        match (self.completed, &self.error) {
            (0, Some(error)) => Err(Fault::new(format!("nothing succeeded: {error}"))),
            (0, None) => Err(Fault::new("nothing was done in that time")),
            _ => Ok(()),
        }
    }
}

fn milliseconds(microseconds: u64) -> f64 {
    rounded(float(microseconds) / 1_000.0)
}

/// Three decimal places.
fn rounded(figure: f64) -> f64 {
    (figure * 1_000.0).round() / 1_000.0
}

/// Figures of a measurement stay far below 2^53, up to which this is exact.
#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn measured(latencies_ms: &[u64]) -> Measured {
        let mut measured = Measured::nothing();
        for latency in latencies_ms {
            measured.record(Duration::from_millis(*latency));
            measured.succeeded += 1;
        }
        measured.elapsed = Duration::from_secs(2);
        measured
    }

    #[test]
    fn the_report_names_its_figures_as_flo_bench_does() {
        let mut measured = measured(&[1, 2, 3, 100]);
        measured.fail(Fault::new("reset"));
        let verified = Verified {
            count: 4,
            by: "the output of each",
        };
        let report = Report::new("puts", 2, &measured, verified);
        let text = serde_json::to_string_pretty(&report).unwrap();
        expect![[r#"
            {
              "workload": "puts",
              "clients": 2,
              "seconds": 2.0,
              "completed": 4,
              "verified": 4,
              "verified_by": "the output of each",
              "errors": 1,
              "error": "reset",
              "runs_per_s": 2.0,
              "p50_ms": 2.0,
              "p95_ms": 100.031,
              "p99_ms": 100.031,
              "max_ms": 100.031
            }"#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_load_that_did_nothing_does_not_count_as_a_success() {
        let verified = Verified { count: 0, by: "" };
        let mut measured = measured(&[]);
        assert!(Report::new("puts", 1, &measured, verified).print().is_err());
        measured.fail(Fault::new("refused"));
        let fault = Report::new("puts", 1, &measured, verified).print();
        assert_eq!(fault, Err(Fault::new("nothing succeeded: refused")));
    }

    #[test]
    fn what_two_clients_did_is_added_up() {
        let mut total = measured(&[5]);
        let mut other = measured(&[7, 9]);
        other.fail(Fault::new("late"));
        total.add(other);
        assert_eq!((total.succeeded, total.errors), (3, 1));
        assert_eq!(total.latencies.len(), 3);
        assert_eq!(total.error, Some(Fault::new("late")));
    }
}
