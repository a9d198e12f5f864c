//! `flo cluster snapshot`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::TakeSnapshotRequest;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo cluster snapshot
  flo cluster snapshot --node 3 --timeout 1m";

/// Make a snapshot of a node's state now and print the log index that it covers
///
/// Nodes make snapshots automatically as their logs grow. A snapshot stays on its node: to save the
/// state elsewhere, use `flo cluster backup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Snapshot {
    /// Member that makes the snapshot [default: the node that is called]
    #[arg(long, value_name = "N")]
    node: Option<u64>,
}

#[derive(Debug, Serialize)]
struct SnapshotView {
    node_id: u64,
    snapshot_index: u64,
}

impl Snapshot {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = TakeSnapshotRequest { node_id: self.node };
        let taken = session.client()?.take_snapshot(request).await?;
        let view = SnapshotView {
            node_id: taken.node_id,
            snapshot_index: taken.snapshot_index,
        };
        session.output.value(&view, |view| {
            format!(
                "node {} has a snapshot up to index {}",
                view.node_id, view.snapshot_index
            )
        })
    }
}
