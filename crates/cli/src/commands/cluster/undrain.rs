//! `flo cluster undrain`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ChangeView;
use clap::Args;
use flotilla_client::v1::UndrainNodeRequest;

/// End the drain of a member: it may lead again, and accepts clients and tasks
///
/// Works without a leader.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo cluster undrain 2")]
pub(crate) struct Undrain {
    /// Id of the member
    node_id: u64,
}

impl Undrain {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = UndrainNodeRequest {
            node_id: self.node_id,
        };
        let answer = session.client()?.undrain_node(request).await?;
        ChangeView::new(self.node_id, answer.changed).print(session.output, "in service")
    }
}
