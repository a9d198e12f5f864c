//! `flo action list`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::ActionView;
use clap::Args;
use flotilla_client::v1::ListActionsRequest;

/// List the registered actions by name
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo action list -o json")]
pub(crate) struct List {
    #[command(flatten)]
    listing: Listing,
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListActionsRequest {
            limit: self.listing.limit,
            page_token: self.listing.page_token,
            ..ListActionsRequest::default()
        };
        let response = session.client()?.list_actions(request).await?;
        let page: Page<ActionView> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
