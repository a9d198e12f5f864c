//! `flo action runs`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::ActionRunRow;
use clap::Args;
use flotilla_client::v1::ListActionRunsRequest;

/// List the runs of an action, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo action runs charge --limit 20")]
pub(crate) struct Runs {
    /// Name of the action
    name: String,

    #[command(flatten)]
    listing: Listing,
}

impl Runs {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListActionRunsRequest {
            name: self.name,
            limit: self.listing.limit,
            page_token: self.listing.page_token,
            ..ListActionRunsRequest::default()
        };
        let response = session.client()?.list_action_runs(request).await?;
        let page: Page<ActionRunRow> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
