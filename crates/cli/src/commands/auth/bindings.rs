//! `flo auth bindings`.

use crate::commands::listing::Listing;
use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::BindingView;
use clap::Args;
use flotilla_client::v1::{ListBindingsRequest, ListClusterBindingsRequest};

/// List the rights of the holders of client certificates
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo auth bindings --namespace shop\n  flo auth bindings --cluster"
)]
pub(crate) struct Bindings {
    #[command(flatten)]
    scope: Scope,

    #[command(flatten)]
    listing: Listing,
}

impl Bindings {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let (limit, page_token) = (self.listing.limit, self.listing.page_token);
        let client = session.client()?;
        let response = if self.scope.cluster {
            let request = ListClusterBindingsRequest { limit, page_token };
            client.list_cluster_bindings(request).await?
        } else {
            let request = ListBindingsRequest {
                limit,
                page_token,
                ..ListBindingsRequest::default()
            };
            client.list_bindings(request).await?
        };
        let page: Page<BindingView> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
