//! `flo auth blocks`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::BlockView;
use clap::Args;
use flotilla_client::v1::ListBlocksRequest;

/// List the blocked subjects, including those whose block has ended but was not removed
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo auth blocks")]
pub(crate) struct Blocks {
    #[command(flatten)]
    listing: Listing,
}

impl Blocks {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListBlocksRequest {
            limit: self.listing.limit,
            page_token: self.listing.page_token,
        };
        let response = session.client()?.list_blocks(request).await?;
        let page: Page<BlockView> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
