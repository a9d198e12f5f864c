//! `flo kv scan`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::KeyView;
use clap::Args;
use flotilla_client::v1::{ScanKeysRequest, ScanKeysResponse};

/// List the keys that begin with a prefix, with their values
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flo kv scan config/\n  flo kv scan --limit 1000")]
pub(crate) struct Scan {
    /// What the keys begin with [default: anything]
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    listing: Listing,
}

impl Scan {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let (mut items, mut next_page) = (Vec::new(), self.listing.page);
        // One page of the server has fewer keys than were asked for when their values may be large.
        while let Some(left) = left(self.listing.limit, items.len()) {
            let request = ScanKeysRequest {
                prefix: self.prefix.clone(),
                limit: left,
                page_token: next_page,
                ..ScanKeysRequest::default()
            };
            let ScanKeysResponse {
                items: found,
                next_page: next,
            } = client.scan_keys(request).await?;
            items.extend(found);
            next_page = next;
            if next_page.is_empty() {
                break;
            }
        }
        let page: Page<KeyView> = Page::new(items, next_page);
        session.output.page(&page)
    }
}

/// How many keys are missing yet; `None` for none.
fn left(limit: u32, found: usize) -> Option<u32> {
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    Some(limit.saturating_sub(found)).filter(|left| *left > 0)
}
