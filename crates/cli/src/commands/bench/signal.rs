//! `flo bench signal`: signals to waiting runs.

use super::load::{LoadFlags, Piece, Work};
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::create_workflow;
use crate::failure::Failure;
use crate::session::Session;
use bytes::Bytes;
use clap::Args;
use flotilla_client::v1::SignalRunRequest;
use tokio::time::Instant;

const WORKFLOW: &str = "flo-bench-signal";
const SIGNAL: &str = "go";

/// A run that gets no signal, because its bench was stopped, ends by itself.
const SOURCE: &str = r#"
kind: Workflow
name: flo-bench-signal
version: "1"
retention_ms: 3600000
start:
  waitForSignal: {type: go, timeoutMs: 600000, onTimeout: flo.TimedOut}
  transitions: {success: flo.Completed}
"#;

/// The index of the stage for the latency of whole runs.
const COMPLETION: usize = 0;
const STAGES: &[&str] = &["signal to completion"];

/// Measure signals to waiting runs
///
/// Each client starts a run, sends it a signal and waits until the run has completed with the
/// signal's payload as its output. It measures the acknowledged signal and the time from the signal
/// to the end of the run. The start is not measured, but takes its share of the throughput.
///
/// Leaves behind: the definition, and the runs for an hour. Runs without a signal end after 10
/// minutes.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench signal --clients 64 --seconds 10 --endpoint 127.0.0.1:9000,127.0.0.1:9010"
)]
pub(crate) struct Signal {
    /// Payload bytes of each signal, in addition to a number
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    payload: u32,

    #[command(flatten)]
    load: LoadFlags,

    #[command(flatten)]
    report: ReportFlags,
}

impl Signal {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let bench = Bench::open(session, &self.load, &self.report, STAGES)?;
        create_workflow(bench.client(), SOURCE).await?;
        let signals = Signals {
            payloads: Payloads::new(self.payload),
        };
        let conditions = Conditions {
            payload_bytes: Some(self.payload),
            ..Conditions::new("signal", "signals", "acknowledged signal")
        };
        bench.measure(signals, conditions).await
    }
}

struct Signals {
    payloads: Payloads,
}

impl Work for Signals {
    type Prepared = String;

    async fn prepare(&self, piece: &Piece) -> Result<String, Failure> {
        runs::start(&piece.client, WORKFLOW, Bytes::new()).await
    }

    async fn perform(&self, piece: &Piece, run_id: String) -> Result<Instant, Failure> {
        let request = SignalRunRequest {
            run_id: run_id.clone(),
            r#type: SIGNAL.to_owned(),
            payload: self.payloads.input(piece.number),
            ..SignalRunRequest::default()
        };
        piece.client.signal_run(request).await?;
        let acknowledged = Instant::now();
        let completed = runs::count_to(piece, &run_id, piece.number).await?;
        let latency = completed.saturating_duration_since(piece.due);
        piece.meter.note_stage(COMPLETION, latency);
        Ok(acknowledged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_is_valid() {
        let parsed = flotilla_dsl::parse(SOURCE);
        assert!(parsed.findings.is_empty(), "{:?}", parsed.findings);
    }
}
