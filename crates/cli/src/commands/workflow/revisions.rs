//! `flo workflow revisions`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::RevisionRow;
use clap::Args;
use flotilla_client::v1::ListRevisionsRequest;

/// List the revisions of a workflow, ordered by version label (as text) and number
///
/// Revisions with the same signature have the same steps. Without --force, `flo workflow resume`
/// accepts only a revision with the signature of the run.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow revisions order\n  flo workflow show order --version 1.0.0 --revision 2"
)]
pub(crate) struct Revisions {
    /// Name of the workflow
    name: String,

    #[command(flatten)]
    listing: Listing,
}

impl Revisions {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListRevisionsRequest {
            workflow: self.name,
            limit: self.listing.limit,
            page_token: self.listing.page_token,
            ..ListRevisionsRequest::default()
        };
        let response = session.client()?.list_revisions(request).await?;
        let page: Page<RevisionRow> = Page::new(response.items, response.next_page_token);
        session.output.page(&page)
    }
}
