//! `flo stream group pending`.

use super::Named;
use crate::failure::Failure;
use crate::output::Page;
use crate::session::Session;
use crate::views::PendingView;
use clap::Args;
use flotilla_client::v1::ListPendingRequest;

/// List the deliveries of a group that are not acknowledged
///
/// Shows records in flight first, then records that wait for redelivery.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo stream group pending orders billing --limit 1000")]
pub(crate) struct Pending {
    #[command(flatten)]
    named: Named,

    /// Maximum number of rows
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

impl Pending {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = ListPendingRequest {
            stream: self.named.stream,
            group: self.named.group,
            limit: self.limit,
            ..ListPendingRequest::default()
        };
        let response = session.client()?.list_pending(request).await?;
        let page: Page<PendingView> = Page::new(response.items, String::new());
        session.output.page(&page)
    }
}
