//! `flo kv scan`.

use crate::commands::listing::Listing;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::KeyView;
use clap::Args;
use flotilla_client::v1::{ScanKeysRequest, ScanKeysResponse};

/// List keys and values by prefix
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flo kv scan config/\n  flo kv scan --limit 1000")]
pub(crate) struct Scan {
    /// Prefix of the keys [default: all keys]
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    listing: Listing,
}

impl Scan {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let (mut items, mut next_page_token) = (Vec::new(), self.listing.page_token);
        // If values are large, one page of the server may hold fewer keys than requested.
        while let Some(left) = left(self.listing.limit, items.len()) {
            let request = ScanKeysRequest {
                prefix: self.prefix.clone(),
                limit: left,
                page_token: next_page_token,
                ..ScanKeysRequest::default()
            };
            let ScanKeysResponse {
                items: found,
                next_page_token: next,
            } = client.scan_keys(request).await?;
            items.extend(found);
            next_page_token = next;
            if next_page_token.is_empty() {
                break;
            }
        }
        let page: Page<KeyView> = Page::new(items, next_page_token);
        session.output.page(&page)
    }
}

/// The number of keys still wanted; `None` for zero.
fn left(limit: u32, found: usize) -> Option<u32> {
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    Some(limit.saturating_sub(found)).filter(|left| *left > 0)
}
