//! `flo bench read`: reads of runs.

use super::load::{LoadFlags, Piece, Work};
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::setup::{create_workflow, start_runs};
use super::start::{self, RETENTION_MS, WORKFLOW};
use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{GetRunRequest, RunStatus};
use rand::RngExt;
use tokio::time::Instant;

/// Measure reads of runs
///
/// Starts runs that do nothing and then reads them in random order. Reads are linearizable; with
/// --stale, a read returns what the node has applied. A client that has learned who leads calls the
/// leader, whatever the endpoint, so reads served by followers are not measured.
///
/// Leaves behind: the definition of `flo bench start`, and the runs for an hour.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo bench read --clients 64 --seconds 10 --endpoint 127.0.0.1:9000,127.0.0.1:9010\n  flo bench read --stale"
)]
pub(crate) struct Read {
    /// Read what the node has applied, without asking the leader
    #[arg(long)]
    stale: bool,

    /// Number of runs to read from
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,

    /// Payload bytes in the input of each run, in addition to a number
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    payload: u32,

    #[command(flatten)]
    load: LoadFlags,

    #[command(flatten)]
    report: ReportFlags,
}

impl Read {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let bench = Bench::open(session, &self.load, &self.report, &[])?;
        create_workflow(bench.client(), &start::source(RETENTION_MS)).await?;
        let payloads = Payloads::new(self.payload);
        let run_ids = start_runs(bench.client(), WORKFLOW, self.runs, &payloads).await?;
        let reads = Reads {
            run_ids,
            is_stale: self.stale,
        };
        let workload = if self.stale { "read --stale" } else { "read" };
        let conditions = Conditions {
            payload_bytes: Some(self.payload),
            ..Conditions::new(workload, "reads", "read")
        };
        bench.measure(reads, conditions).await
    }
}

struct Reads {
    run_ids: Vec<String>,
    is_stale: bool,
}

impl Work for Reads {
    type Prepared = ();

    async fn prepare(&self, _: &Piece) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, piece: &Piece, (): ()) -> Result<Instant, Failure> {
        let run_id = &self.run_ids[rand::rng().random_range(0..self.run_ids.len())];
        let request = GetRunRequest {
            run_id: run_id.clone(),
            stale: self.is_stale,
            ..GetRunRequest::default()
        };
        let run = piece.client.get_run(request).await?;
        let read = Instant::now();
        if (&run.run_id, run.status()) == (run_id, RunStatus::Completed) {
            return Ok(read);
        }
        let message = format!(
            "expected run {run_id} to have completed, but run {} is {}",
            run.run_id,
            run.status().as_str_name()
        );
        Err(Failure::new(Code::BenchOutputMismatch, message))
    }
}
