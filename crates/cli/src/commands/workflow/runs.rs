//! `flo workflow runs`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::RunRow;
use clap::Args;
use flotilla_client::PublishedName;
use flotilla_client::v1::{ListRunsRequest, RunStatus};

const EXAMPLES: &str = "\
Examples:
  flo workflow runs
  flo workflow runs --workflow order --status waiting --limit 20
  flo workflow runs --where 'total > 99.5 and started_at >= 2026-01-31T09:00:00Z'

A condition compares workflow, status, started_at, completed_at or a search attribute with a value:
=, !=, <, <=, >, >=; strings in single quotes; times as 2026-01-31T09:00:00Z or in milliseconds.";

/// List runs, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Runs {
    /// Only runs of this workflow
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    workflow: String,

    /// Only runs in this status: pending, running, waiting, completed, failed, cancelled, timed_out
    #[arg(long, value_parser = parse_status)]
    status: Option<RunStatus>,

    /// Only runs that meet these conditions, joined by `and`
    #[arg(
        long = "where",
        value_name = "EXPR",
        default_value = "",
        hide_default_value = true
    )]
    conditions: String,

    #[command(flatten)]
    listing: Listing,
}

impl Runs {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListRunsRequest {
            workflow: self.workflow,
            status: self.status.unwrap_or_default().into(),
            r#where: self.conditions,
            limit: self.listing.limit,
            page_token: self.listing.page,
            ..ListRunsRequest::default()
        };
        let response = session.client()?.list_runs(request).await?;
        let page: Page<RunRow> = Page::new(response.items, response.next_page);
        session.output.page(&page)
    }
}

fn parse_status(text: &str) -> Result<RunStatus, String> {
    RunStatus::from_published_name(text)
        .ok_or_else(|| format!("expected the status of a run, but {text:?} is none"))
}
