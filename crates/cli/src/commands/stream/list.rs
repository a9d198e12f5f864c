//! `flo stream list`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::StreamView;
use clap::Args;
use flotilla_client::v1::ListStreamsRequest;

/// List streams by name
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo stream list")]
pub(crate) struct List {
    #[command(flatten)]
    listing: Listing,
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListStreamsRequest {
            limit: self.listing.limit,
            page_token: self.listing.page_token,
            ..ListStreamsRequest::default()
        };
        let response = session.client()?.list_streams(request).await?;
        let page: Page<StreamView> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
