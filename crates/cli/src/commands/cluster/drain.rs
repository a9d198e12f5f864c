//! `flo cluster drain`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::ChangeView;
use clap::Args;
use flotilla_client::v1::DrainNodeRequest;

/// Drain a member: it keeps its vote, but does not lead, is not ready, and ends waiting calls
///
/// Its clients and workers continue at other nodes, and its embedded workers return their tasks. It still answers calls. The
/// drain ends with `flo cluster undrain`, or when the node restarts. It is refused if no other voter
/// is up and not drained.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo cluster drain 2")]
pub(crate) struct Drain {
    /// Id of the member
    node_id: u64,
}

impl Drain {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = DrainNodeRequest {
            node_id: self.node_id,
        };
        let answer = session.client()?.drain_node(request).await?;
        ChangeView::new(self.node_id, answer.changed).print(session.output, "drained")
    }
}
