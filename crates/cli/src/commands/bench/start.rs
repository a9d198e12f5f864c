//! `flo bench start`: starts of runs that do nothing.

use super::completion;
use super::load::{LoadFlags, Piece, Work};
use super::measurement::{Bench, Figures};
use super::payload::Payloads;
use super::setup::create_workflow;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;

const WORKFLOW: &str = "flo-bench-start";

/// The action is never registered, so the one step ends where it begins: in the turn of the start.
const SOURCE: &str = r#"
kind: Workflow
name: flo-bench-start
version: "2"
retention_ms: 3600000
start:
  run: "@actions/flo-bench-nobody"
  transitions: {target_not_found: flo.Completed, failure: flo.Failed}
"#;

/// Measure starts of runs that do nothing
///
/// A run has one step, whose action does not exist: it ends at once, without a worker, and is forgotten an hour
/// later. What is measured is the acknowledged start.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench start --clients 64 --seconds 10 --endpoint 127.0.0.1:9000,127.0.0.1:9010"
)]
pub(crate) struct Start {
    #[command(flatten)]
    load: LoadFlags,

    /// How many bytes the input of each run has, beside a number
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    payload: u32,
}

impl Start {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let bench = Bench::open(session, "start", &self.load, &[])?;
        create_workflow(bench.client(), SOURCE.to_owned()).await?;
        let starts = Starts {
            payloads: Payloads::new(self.payload),
        };
        let figures = Figures {
            payload_bytes: Some(self.payload),
            ..Figures::default()
        };
        bench.measure(starts, figures).await
    }
}

struct Starts {
    payloads: Payloads,
}

impl Work for Starts {
    type Prepared = ();

    async fn prepare(&self, _: &Piece) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, piece: &Piece, (): ()) -> Result<(), Failure> {
        let input = self.payloads.input(piece.number);
        completion::start(piece, WORKFLOW, input).await.map(drop)
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
