//! `flo bench parked`: many runs that wait.

use super::load::LoadFlags;
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::{CALLS_IN_FLIGHT, create_workflow};
use super::start::Starts;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::Session;
use clap::Args;
use flotilla_client::Client;
use flotilla_client::v1::CancelRunRequest;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use std::sync::Arc;

const WORKFLOW: &str = "flo-bench-parked";

/// The runs wait for a week, so that forgotten ones end by themselves.
const SOURCE: &str = r#"
kind: Workflow
name: flo-bench-parked
version: "1"
retention_ms: 60000
start:
  waitForSignal: {type: never, timeoutMs: 604800000, onTimeout: flo.TimedOut}
  transitions: {success: flo.Completed}
"#;

const EXAMPLES: &str = "\
Examples:
  flo bench parked --runs 1000000 --clients 128
  flo bench parked --end";

/// Open waiting runs until a given number is open
///
/// Runs of an earlier call count, so a stopped call can be continued. It measures the acknowledged
/// start; the report shows the memory and disk that the open runs take.
///
/// Leaves behind: the runs, until --end cancels them or a week has passed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Parked {
    /// Number of runs to have open
    #[arg(long, value_name = "N", default_value_t = 100_000, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    runs: u64,

    /// Cancel all of them instead
    #[arg(long, conflicts_with_all = ["runs", "payload", "plot", "labels"])]
    end: bool,

    /// Number of concurrent starts
    #[arg(long, value_name = "C", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    clients: u16,

    /// Number of connections that the clients share
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,

    /// Payload bytes in the input of each run, in addition to a number
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    payload: u32,

    #[command(flatten)]
    report: ReportFlags,
}

/// The cancelled runs.
#[derive(Debug, Serialize)]
struct EndedView {
    ended: u64,
}

impl Parked {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let flags = LoadFlags::of_count(self.runs, self.clients, self.connections);
        let bench = Bench::open(session, &flags, &self.report, &[])?;
        if self.end {
            let ended = end_all(bench.client()).await?;
            let view = EndedView { ended };
            return session
                .output
                .value(&view, |view| format!("{} runs ended", view.ended));
        }
        create_workflow(bench.client(), SOURCE).await?;
        let open = count_open(bench.client()).await?;
        self.open(session, open).await
    }

    /// Starts the missing runs.
    async fn open(&self, session: &Session, open: u64) -> Result<(), Failure> {
        let missing = self.runs.saturating_sub(open);
        let flags = LoadFlags::of_count(missing, self.clients, self.connections);
        let bench = Bench::open(session, &flags, &self.report, &[])?;
        let parking = Starts {
            workflow: WORKFLOW,
            payloads: Payloads::new(self.payload),
        };
        let (measured, looks) = bench.load(Arc::new(parking)).await?;
        let open = if measured.is_stopped {
            // Starts that were in flight at the end are not counted, but have happened.
            count_open(bench.client()).await?
        } else {
            open + measured.completed
        };
        let conditions = Conditions {
            payload_bytes: Some(self.payload),
            open_runs: Some(open),
            ..Conditions::new("parked", "starts", "acknowledged start")
        };
        bench.conclude(measured, conditions, &looks)
    }
}

/// The number of runs that wait already.
async fn count_open(client: &Client) -> Result<u64, Failure> {
    let progress = Progress::start("counting the waiting runs".to_owned());
    let (mut open, mut page_token) = (0, String::new());
    loop {
        let (page, next) = runs::waiting(client, WORKFLOW, page_token).await?;
        open += u64::try_from(page.len()).unwrap_or(u64::MAX);
        if next.is_empty() {
            return Ok(open);
        }
        progress.say(format!("{open} runs are waiting"));
        page_token = next;
    }
}

/// Cancels the waiting runs, page by page.
async fn end_all(client: &Client) -> Result<u64, Failure> {
    let progress = Progress::start("cancelling the waiting runs".to_owned());
    let mut ended = 0;
    loop {
        let (page, _) = runs::waiting(client, WORKFLOW, String::new()).await?;
        if page.is_empty() {
            return Ok(ended);
        }
        ended += u64::try_from(page.len()).unwrap_or(u64::MAX);
        let cancels = stream::iter(page).map(|run| cancel(client, run.run_id));
        let cancels = cancels.buffer_unordered(CALLS_IN_FLIGHT);
        cancels.try_collect::<()>().await?;
        progress.say(format!("{ended} runs cancelled"));
    }
}

async fn cancel(client: &Client, run_id: String) -> Result<(), Failure> {
    let request = CancelRunRequest {
        run_id,
        reason: "the bench has ended".to_owned(),
        ..CancelRunRequest::default()
    };
    client.cancel_run(request).await?;
    Ok(())
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
