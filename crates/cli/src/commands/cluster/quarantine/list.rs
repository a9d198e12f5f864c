//! `flo cluster quarantine list`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::QuarantinedView;
use clap::Args;
use flotilla_client::v1::ListQuarantinedRequest;

/// List quarantined items of all namespaces
///
/// A bug in the processing of one item does not stop the others: the item is quarantined, keeps its
/// state, and rejects commands. The log of the node that led at the time describes the bug at the
/// log index shown.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo cluster quarantine list\n  flo cluster quarantine list -o json"
)]
pub(crate) struct List {
    #[command(flatten)]
    listing: Listing,
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListQuarantinedRequest {
            limit: self.listing.limit,
            page_token: self.listing.page_token,
            ..ListQuarantinedRequest::default()
        };
        let response = session.client()?.list_quarantined(request).await?;
        let page: Page<QuarantinedView> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
