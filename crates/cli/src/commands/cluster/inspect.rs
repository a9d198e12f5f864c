//! `flo cluster inspect`.

use crate::failure::Failure;
use crate::session::Session;
use crate::views::InspectionView;
use clap::Args;
use flotilla_client::v1::InspectNodeRequest;

const EXAMPLES: &str = "\
Examples:
  flo cluster inspect
  flo cluster inspect --node 3 --limit 100 -o json";

/// Show what is queued or in progress on a node: commands, requests, callers, workers, snapshots and connections
///
/// Use it if the cluster is stuck or slow. It works without a leader. The node that is called forwards
/// the request to the named member. Only the leader shows queued commands, open polls and followers.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Inspect {
    /// Member to inspect [default: the node that is called]
    #[arg(long, value_name = "N")]
    node: Option<u64>,
    /// Rows to show in each section, the largest ones; at most 100
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

impl Inspect {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = InspectNodeRequest {
            node_id: self.node,
            limit: self.limit,
        };
        let inspection = session.client()?.inspect_node(request).await?;
        let view = InspectionView::from(inspection);
        session.output.value(&view, InspectionView::text)
    }
}
