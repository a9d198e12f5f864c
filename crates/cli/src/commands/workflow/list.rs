//! `flo workflow list`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::WorkflowRow;
use clap::Args;
use flotilla_client::v1::ListWorkflowsRequest;

/// List workflows by name, each with its latest revision
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo workflow list -n shop")]
pub(crate) struct List {
    #[command(flatten)]
    listing: Listing,
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListWorkflowsRequest {
            limit: self.listing.limit,
            page_token: self.listing.page_token,
            ..ListWorkflowsRequest::default()
        };
        let response = session.client()?.list_workflows(request).await?;
        let page: Page<WorkflowRow> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
