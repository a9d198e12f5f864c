//! `flo cluster quarantine list`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::QuarantinedView;
use clap::Args;
use flotilla_client::v1::ListQuarantinedRequest;

/// List what is set aside, in all namespaces
///
/// A bug in the work of one thing does not stop the others: the thing is set aside, stays as it was, and
/// refuses commands. The node that led then has logged the bug at the log index that is shown.
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
            page_token: self.listing.page,
            ..ListQuarantinedRequest::default()
        };
        let response = session.client()?.list_quarantined(request).await?;
        let page: Page<QuarantinedView> = Page::new(response.items, response.next_page);
        session.output.page(&page)
    }
}
