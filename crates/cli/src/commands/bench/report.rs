//! What a measurement prints.

use super::load::Measured;
use hdrhistogram::Histogram;
use serde::Serialize;

/// The figures.
#[derive(Debug, Serialize)]
pub(super) struct ReportView {
    workload: &'static str,
    clients: u16,
    seconds: f64,
    completed: u64,
    errors: u64,
    runs_per_s: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// Starts for each entry that the log grew by. Entries of other traffic, and those that the
    /// cluster writes for itself, lower it.
    commands_per_entry: Option<f64>,
    entries_per_s: f64,
}

impl ReportView {
    /// Works the figures out.
    pub(super) fn new(
        workload: &'static str,
        clients: u16,
        measured: &Measured,
        entries: u64,
    ) -> Self {
        let seconds = measured.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let completed = measured.completed();
        let latencies = &measured.latencies;
        Self {
            workload,
            clients,
            completed,
            seconds: rounded(seconds),
            errors: measured.errors,
            runs_per_s: rounded(float(completed) / seconds),
            p50_ms: quantile_ms(latencies, 0.50),
            p95_ms: quantile_ms(latencies, 0.95),
            p99_ms: quantile_ms(latencies, 0.99),
            max_ms: rounded(float(latencies.max()) / 1_000.0),
            commands_per_entry: (entries > 0).then(|| rounded(float(completed) / float(entries))),
            entries_per_s: rounded(float(entries) / seconds),
        }
    }

    /// The figures for people.
    pub(super) fn text(&self) -> String {
        let per_entry = self
            .commands_per_entry
            .map_or("-".to_owned(), |figure| figure.to_string());
        format!(
            "{} runs/s ({} in {} s by {} clients, {} errors)\n\
             latency p50 {} ms, p95 {} ms, p99 {} ms, max {} ms\n\
             {} entries/s, {per_entry} commands per entry",
            self.runs_per_s,
            self.completed,
            self.seconds,
            self.clients,
            self.errors,
            self.p50_ms,
            self.p95_ms,
            self.p99_ms,
            self.max_ms,
            self.entries_per_s,
        )
    }
}

fn quantile_ms(latencies: &Histogram<u64>, quantile: f64) -> f64 {
    rounded(float(latencies.value_at_quantile(quantile)) / 1_000.0)
}

/// Two digits after the point.
fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

/// Figures of a measurement stay far below 2^53, up to which this is exact.
#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
