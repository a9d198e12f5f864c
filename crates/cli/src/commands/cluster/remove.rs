//! `flo cluster remove`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ChangeView;
use clap::Args;
use flotilla_client::v1::RemoveNodeRequest;

/// Take a member out for good
///
/// Its process ends, and its id is never used again. A leader hands over first. Refused when too few
/// of the voters that remain would answer.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo cluster remove 2")]
pub(crate) struct Remove {
    /// The member's id
    node_id: u64,
}

impl Remove {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = RemoveNodeRequest {
            node_id: self.node_id,
        };
        let answer = session.client()?.remove_node(request).await?;
        ChangeView::new(self.node_id, answer.changed).print(session.output, "no member")
    }
}
