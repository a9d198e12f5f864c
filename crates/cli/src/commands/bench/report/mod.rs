//! What a measurement prints.

mod latency;

use super::load::{LoadFlags, Measured, Pace};
use super::measurement::Figures;
use latency::LatencyView;
use serde::Serialize;

/// The figures.
#[derive(Debug, Serialize)]
pub(super) struct ReportView {
    workload: &'static str,
    clients: u16,
    connections: u16,
    /// How many were to begin a second; none where each waited for one before.
    rate: Option<u32>,
    payload_bytes: Option<u32>,
    /// For how long it was measured.
    seconds: f64,
    completed: u64,
    errors: u64,
    /// The first of them.
    error: Option<String>,
    /// How many were due and had not begun when the load ended.
    unbegun: u64,
    runs_per_s: f64,
    steps_per_s: Option<f64>,
    #[serde(flatten)]
    latency: LatencyView,
    /// Parts of the work that were measured on their own.
    stages: Vec<StageView>,
    /// Runs for each entry that the log grew by. Entries of other traffic, and those that the
    /// cluster writes for itself, lower it.
    commands_per_entry: Option<f64>,
    entries_per_s: f64,
}

/// A part of the work.
#[derive(Debug, Serialize)]
struct StageView {
    name: &'static str,
    #[serde(flatten)]
    latency: LatencyView,
}

impl ReportView {
    /// Works the figures out.
    pub(super) fn new(
        (workload, flags): (&'static str, &LoadFlags),
        figures: Figures,
        measured: &Measured,
        entries: u64,
    ) -> Self {
        let seconds = measured.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let completed = measured.completed;
        let runs_per_s = float(completed) / seconds;
        let steps_per_s = |steps: u16| rounded(runs_per_s * f64::from(steps));
        let stages = measured.stages.iter().map(|(name, latencies)| StageView {
            name,
            latency: LatencyView::new(latencies),
        });
        Self {
            workload,
            clients: flags.clients(),
            connections: flags.connections(),
            rate: match flags.pace() {
                Pace::Closed => None,
                Pace::Open(rate) => Some(rate),
            },
            payload_bytes: figures.payload_bytes,
            seconds: rounded(seconds),
            completed,
            errors: measured.errors,
            error: measured
                .error
                .as_ref()
                .map(|error| error.message().to_owned()),
            unbegun: measured.unbegun,
            runs_per_s: rounded(runs_per_s),
            steps_per_s: figures.steps_per_run.map(steps_per_s),
            latency: LatencyView::new(&measured.latencies),
            stages: stages.collect(),
            commands_per_entry: (entries > 0).then(|| rounded(float(completed) / float(entries))),
            entries_per_s: rounded(float(entries) / seconds),
        }
    }

    /// The figures for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} runs/s ({} in {} s by {} clients, {} errors)\n",
            self.runs_per_s, self.completed, self.seconds, self.clients, self.errors
        );
        if let Some(steps) = self.steps_per_s {
            text.push_str(&format!("{steps} steps/s\n"));
        }
        text.push_str(&format!("latency {}\n", self.latency.text()));
        for stage in &self.stages {
            text.push_str(&format!("{} {}\n", stage.name, stage.latency.text()));
        }
        let per_entry = self
            .commands_per_entry
            .map_or("-".to_owned(), |figure| figure.to_string());
        text.push_str(&format!(
            "{} entries/s, {per_entry} commands per entry",
            self.entries_per_s
        ));
        if let Some(error) = &self.error {
            text.push_str(&format!("\nthe first error: {error}"));
        }
        if self.unbegun > 0 {
            text.push_str(&format!(
                "\nthe rate was not kept: {} were due and had not begun at the end",
                self.unbegun
            ));
        }
        text
    }
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
