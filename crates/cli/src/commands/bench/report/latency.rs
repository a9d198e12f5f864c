//! Quantiles of latencies.

use super::{float, rounded};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The number of points of the curve per halving of the remainder.
const POINTS_PER_HALF: u32 = 4;

/// Quantiles of latencies in milliseconds; absent without latencies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Latency {
    /// The number of latencies.
    pub(in super::super) count: u64,
    pub(in super::super) p50_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    pub(in super::super) p99_ms: Option<f64>,
    pub(super) p999_ms: Option<f64>,
    pub(super) max_ms: Option<f64>,
    /// The curve: quantiles and their latencies.
    pub(in super::super) quantiles: Vec<(f64, f64)>,
}

impl Latency {
    /// The quantiles of a histogram in microseconds.
    pub(super) fn new(latencies: &Histogram<u64>) -> Self {
        let known = |micros| (!latencies.is_empty()).then(|| ms(micros));
        let quantile = |quantile| known(latencies.value_at_quantile(quantile));
        let curve = latencies.iter_quantiles(POINTS_PER_HALF);
        Self {
            count: latencies.len(),
            p50_ms: quantile(0.50),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: known(latencies.max()),
            quantiles: curve
                .map(|step| {
                    let share = (step.quantile_iterated_to() * 1e6).round() / 1e6;
                    (share, ms(step.value_iterated_to()))
                })
                .collect(),
        }
    }
}

/// Microseconds as milliseconds: below one, two decimal places are significant.
fn ms(micros: u64) -> f64 {
    rounded(float(micros) / 1_000.0)
}
