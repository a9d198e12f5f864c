//! `flo workflow report`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ReportView;
use clap::Args;
use flotilla_client::v1::{GetRunReportRequest, GetRunReportResponse};
use flotilla_client::{Client, ClientError, ErrorKind};
use std::collections::BTreeSet;

/// The most steps that one response holds.
const PAGE_STEPS: u32 = 1000;
/// The most child runs that one report includes.
const CHILDREN_MAX: usize = 1000;

/// Print each visit to a step of a run, with its attempts
///
/// Prints a table of the visits, in the order in which they began. With -o json, each visit also has
/// its input, its output and its attempts: when each began and ended, which worker ran it, and why it
/// failed. Iterations that succeeded are left out, except for compensations that undo them later.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow report wfrun-1\n  flo workflow report wfrun-1 --children 2 -o json"
)]
pub(crate) struct Report {
    /// Id of the run
    run: String,

    /// Include the reports of child runs, down to this depth (at most 3)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=3))]
    children: u32,

    /// Token of the page to print: the `next_page_token` of the previous page
    #[arg(
        long,
        value_name = "TOKEN",
        default_value = "",
        hide_default_value = true
    )]
    page_token: String,
}

impl Report {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let mut budget = Some(CHILDREN_MAX);
        let page = request(&client, self.run.clone(), self.page_token).await?;
        let report = with_children(&client, page, self.children, &mut budget).await?;
        session.output.value(&report, ReportView::text)?;
        for (run, token) in report.next_pages(&self.run) {
            let next = format!("more steps: flo workflow report {run} --page-token {token}");
            session.output.note(&next);
        }
        if budget.is_none() {
            let note = format!("more child runs: only {CHILDREN_MAX} are included");
            session.output.note(&note);
        }
        Ok(())
    }
}

/// The first page of the report of a run; `None` if there is no such run.
async fn first_page(
    client: &Client,
    run_id: String,
) -> Result<Option<GetRunReportResponse>, Failure> {
    match request(client, run_id, String::new()).await {
        Ok(page) => Ok(Some(page)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn request(
    client: &Client,
    run_id: String,
    page_token: String,
) -> Result<GetRunReportResponse, ClientError> {
    let request = GetRunReportRequest {
        run_id,
        page_token,
        limit: PAGE_STEPS,
        ..GetRunReportRequest::default()
    };
    client.get_run_report(request).await
}

/// The page with the reports of its child runs, down to a depth. `budget` is how many more reports may be read; `None` once
/// one was left out.
async fn with_children(
    client: &Client,
    page: GetRunReportResponse,
    depth: u32,
    budget: &mut Option<usize>,
) -> Result<ReportView, Failure> {
    let children = children(&page);
    let mut report = ReportView::from(page);
    if depth == 0 {
        return Ok(report);
    }
    for child in children {
        *budget = budget.and_then(|left| left.checked_sub(1));
        if budget.is_none() {
            break;
        }
        // It may have been deleted since.
        if let Some(page) = first_page(client, child).await? {
            let child = Box::pin(with_children(client, page, depth - 1, budget)).await?;
            report.add_child(child);
        }
    }
    Ok(report)
}

/// The child runs that the steps have called, each once, in that order.
fn children(page: &GetRunReportResponse) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let attempts = page.steps.iter().flat_map(|step| &step.attempts);
    let children = attempts.filter_map(|attempt| attempt.child_run_id.clone());
    children
        .filter(|child| seen.insert(child.clone()))
        .collect()
}
