//! `flo ns list`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::NamespaceView;
use clap::Args;
use flotilla_client::v1::ListNamespacesRequest;

/// List namespaces by name
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo ns list")]
pub(crate) struct List {
    #[command(flatten)]
    listing: Listing,
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListNamespacesRequest {
            limit: self.listing.limit,
            page_token: self.listing.page_token,
        };
        let response = session.client()?.list_namespaces(request).await?;
        let page: Page<NamespaceView> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
