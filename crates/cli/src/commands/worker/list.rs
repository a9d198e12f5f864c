//! `flo worker list`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::WorkerView;
use clap::Args;
use flotilla_client::v1::ListWorkersRequest;

/// List workers by id, including unhealthy ones
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo worker list")]
pub(crate) struct List {
    #[command(flatten)]
    listing: Listing,
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListWorkersRequest {
            limit: self.listing.limit,
            page_token: self.listing.page_token,
            ..ListWorkersRequest::default()
        };
        let response = session.client()?.list_workers(request).await?;
        let page: Page<WorkerView> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
