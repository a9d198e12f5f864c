//! `flo workflow runs`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::RunRow;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
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

    /// Only runs with this status
    #[arg(long, value_parser = statuses())]
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
            page_token: self.listing.page_token,
            ..ListRunsRequest::default()
        };
        let response = session.client()?.list_runs(request).await?;
        let page: Page<RunRow> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)?;
        for name in response.unknown_attributes {
            let text = format!("no run has the search attribute {name:?}");
            session.output.note(&text);
        }
        Ok(())
    }
}

/// The published names of the statuses.
const STATUSES: [&str; 7] = [
    "pending",
    "running",
    "waiting",
    "completed",
    "failed",
    "cancelled",
    "timed_out",
];

/// Parses the published name of a status; the error for any other word lists the valid names.
fn statuses() -> impl TypedValueParser<Value = RunStatus> {
    PossibleValuesParser::new(STATUSES).map(|name| {
        RunStatus::from_published_name(&name).expect("the parser lets only their names through")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser;

    #[test]
    fn an_unknown_status_is_refused_with_a_suggestion() {
        let line = ["flo", "workflow", "runs", "--status", "runing"];
        let text = Arguments::try_parse_from(line)
            .expect_err("misspelt")
            .to_string();
        assert!(text.contains("a similar value exists: 'running'"), "{text}");
    }

    #[test]
    fn every_status_can_be_asked_for() {
        let statuses = (0..).map_while(|number| RunStatus::try_from(number).ok());
        let names: Vec<String> = statuses.filter_map(RunStatus::published_name).collect();
        assert_eq!(names, STATUSES);
    }
}
