//! Quantiles of latencies.

use super::{float, rounded};
use hdrhistogram::Histogram;
use serde::Serialize;

/// Quantiles of latencies.
#[derive(Debug, Serialize)]
pub(super) struct LatencyView {
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
}

impl LatencyView {
    /// Those of a histogram of microseconds.
    pub(super) fn new(latencies: &Histogram<u64>) -> Self {
        let quantile = |quantile| rounded(float(latencies.value_at_quantile(quantile)) / 1_000.0);
        Self {
            p50_ms: quantile(0.50),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: rounded(float(latencies.max()) / 1_000.0),
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        format!(
            "p50 {} ms, p95 {} ms, p99 {} ms, p99.9 {} ms, max {} ms",
            self.p50_ms, self.p95_ms, self.p99_ms, self.p999_ms, self.max_ms
        )
    }
}
