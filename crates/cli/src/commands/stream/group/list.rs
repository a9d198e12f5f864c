//! `flo stream group list`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::GroupView;
use clap::Args;
use flotilla_client::v1::ListGroupsRequest;

/// List the consumer groups of a stream by name
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo stream group list orders")]
pub(crate) struct List {
    /// Name of the stream
    stream: String,

    #[command(flatten)]
    listing: Listing,
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListGroupsRequest {
            stream: self.stream,
            limit: self.listing.limit,
            page_token: self.listing.page_token,
            ..ListGroupsRequest::default()
        };
        let response = session.client()?.list_groups(request).await?;
        let page: Page<GroupView> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
