//! The paging flags that all lists share.

use crate::failure::Failure;
use clap::Args;
use flotilla_client::ClientError;

/// Rows of one page of a whole list: as many as a node returns.
pub(crate) const PAGE_ROWS: u32 = 1_000;

/// Selects a page of a list.
#[derive(Debug, Args)]
pub(crate) struct Listing {
    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,

    /// Token of the page to print: the `next_page_token` of the previous page
    #[arg(
        long,
        value_name = "TOKEN",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) page_token: String,
}

/// The items of all pages of a list. `page` requests the page with a token, and returns its items and the token of the next page.
pub(crate) async fn all_pages<T>(
    page: impl AsyncFn(String) -> Result<(Vec<T>, String), ClientError>,
) -> Result<Vec<T>, Failure> {
    let (mut items, mut page_token) = (Vec::new(), String::new());
    loop {
        let (found, next) = page(page_token).await?;
        items.extend(found);
        if next.is_empty() {
            return Ok(items);
        }
        page_token = next;
    }
}
