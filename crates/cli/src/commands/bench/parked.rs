//! `flo bench parked`: a great many runs that wait.

use super::load::LoadFlags;
use super::measurement::Bench;
use super::payload::Payloads;
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::{CALLS_UNDER_WAY, create_workflow};
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

/// Waits for a week: what is forgotten ends by itself.
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

/// Open runs that wait, as many as there are to be
///
/// Runs of an earlier call count: a call that was stopped is taken up by the next one. What is measured is the
/// acknowledged start; the report says what memory and disk so many open runs take.
///
/// What stays: the runs, until they are ended with --end, or for a week.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Parked {
    /// How many are to be open
    #[arg(long, value_name = "N", default_value_t = 100_000, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    runs: u64,

    /// End them all instead
    #[arg(long, conflicts_with_all = ["runs", "payload", "plot", "labels"])]
    end: bool,

    /// How many are started at a time
    #[arg(long, value_name = "C", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    clients: u16,

    /// How many connections the clients share
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,

    /// How many bytes the input of each run has, beside a number
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    payload: u32,

    #[command(flatten)]
    report: ReportFlags,
}

/// What was ended.
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

    /// Opens what is missing.
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
            // Starts that were under way are not counted, but have come to pass.
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

/// How many wait already.
async fn count_open(client: &Client) -> Result<u64, Failure> {
    let progress = Progress::start("counting the runs that wait".to_owned());
    let (mut open, mut page_token) = (0, String::new());
    loop {
        let (page, next) = runs::waiting(client, WORKFLOW, page_token).await?;
        open += u64::try_from(page.len()).unwrap_or(u64::MAX);
        if next.is_empty() {
            return Ok(open);
        }
        progress.say(format!("{open} runs wait already"));
        page_token = next;
    }
}

/// Cancels them, page by page.
async fn end_all(client: &Client) -> Result<u64, Failure> {
    let progress = Progress::start("ending the runs that wait".to_owned());
    let mut ended = 0;
    loop {
        let (page, _) = runs::waiting(client, WORKFLOW, String::new()).await?;
        if page.is_empty() {
            return Ok(ended);
        }
        ended += u64::try_from(page.len()).unwrap_or(u64::MAX);
        let cancels = stream::iter(page).map(|run| cancel(client, run.run_id));
        let cancels = cancels.buffer_unordered(CALLS_UNDER_WAY);
        cancels.try_collect::<()>().await?;
        progress.say(format!("{ended} runs ended"));
    }
}

async fn cancel(client: &Client, run_id: String) -> Result<(), Failure> {
    let request = CancelRunRequest {
        run_id,
        reason: "the bench is over".to_owned(),
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
