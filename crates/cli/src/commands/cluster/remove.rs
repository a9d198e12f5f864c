//! `flo cluster remove`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ChangeView;
use clap::Args;
use flotilla_client::v1::RemoveNodeRequest;

/// Remove a member permanently
///
/// The node's process ends and its id is never used again. A leader first transfers its leadership.
/// Refused if too few of the remaining voters respond.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo cluster remove 2")]
pub(crate) struct Remove {
    /// Id of the member
    node_id: u64,
}

impl Remove {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = RemoveNodeRequest {
            node_id: self.node_id,
        };
        let answer = session.client()?.remove_node(request).await?;
        ChangeView::new(self.node_id, answer.changed).print(session.output, "removed")
    }
}
