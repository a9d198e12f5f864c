//! The paging flags that all lists share.

use clap::Args;

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
