//! The flags of every list.

use clap::Args;

/// Which page of a list.
#[derive(Debug, Args)]
pub(crate) struct Listing {
    /// How many rows at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,

    /// Where to go on: the `next_page` of the page before
    #[arg(
        long,
        value_name = "TOKEN",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) page: String,
}
