//! `flo token list`.

use crate::commands::listing::Listing;
use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::TokenView;
use clap::Args;
use flotilla_client::v1::{ListClusterTokensRequest, ListTokensRequest};

/// List API tokens, with those that ended in the last 30 days
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flo token list --namespace shop\n  flo token list --cluster")]
pub(crate) struct List {
    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    listing: Listing,
}

impl List {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let (limit, page_token) = (self.listing.limit, self.listing.page_token);
        let client = session.client()?;
        let response = if self.scope.cluster {
            let request = ListClusterTokensRequest { limit, page_token };
            client.list_cluster_tokens(request).await?
        } else {
            let request = ListTokensRequest {
                limit,
                page_token,
                ..ListTokensRequest::default()
            };
            client.list_tokens(request).await?
        };
        let page: Page<TokenView> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
