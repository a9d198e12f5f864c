//! `flo bench start`: starts of runs that do nothing.

use super::load::{LoadFlags, Piece, Work};
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::{Keeping, create_workflow};
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use tokio::time::Instant;

pub(super) const WORKFLOW: &str = "flo-bench-start";

/// The action is never registered, so the only step ends in the turn that starts the run.
pub(super) fn source(retention_ms: u128) -> String {
    format!(
        r#"
kind: Workflow
name: {WORKFLOW}
version: "2"
retention_ms: {retention_ms}
start:
  run: "@actions/flo-bench-missing"
  transitions: {{target_not_found: flo.Completed, success: flo.Failed, failure: flo.Failed}}
"#
    )
}

/// The default retention of the runs: an hour, in milliseconds.
pub(super) const RETENTION_MS: u128 = 3_600_000;

/// Measure starts of runs that do nothing
///
/// A run has one step whose action does not exist, so it ends immediately, without a worker. It
/// measures the acknowledged start.
///
/// Leaves behind: the definition, and the runs until their --retention has passed.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench start --clients 64 --seconds 10 --endpoint 127.0.0.1:9000,127.0.0.1:9010"
)]
pub(crate) struct Start {
    /// Payload bytes in the input of each run, in addition to a number
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    payload: u32,

    #[command(flatten)]
    keeping: Keeping,

    #[command(flatten)]
    load: LoadFlags,

    #[command(flatten)]
    report: ReportFlags,
}

impl Start {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let bench = Bench::open(session, &self.load, &self.report, &[])?;
        create_workflow(bench.client(), &source(self.keeping.retention_ms())).await?;
        let starts = Starts {
            workflow: WORKFLOW,
            payloads: Payloads::new(self.payload),
        };
        let conditions = Conditions {
            payload_bytes: Some(self.payload),
            ..Conditions::new("start", "starts", "acknowledged start")
        };
        bench.measure(starts, conditions).await
    }
}

/// Starts of runs of one workflow.
pub(super) struct Starts {
    pub(super) workflow: &'static str,
    pub(super) payloads: Payloads,
}

impl Work for Starts {
    type Prepared = ();

    async fn prepare(&self, _: &Piece) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, piece: &Piece, (): ()) -> Result<Instant, Failure> {
        let input = self.payloads.input(piece.number);
        runs::start(&piece.client, self.workflow, input).await?;
        Ok(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_is_valid() {
        let parsed = flotilla_dsl::parse(&source(RETENTION_MS));
        assert!(parsed.findings.is_empty(), "{:?}", parsed.findings);
    }
}
