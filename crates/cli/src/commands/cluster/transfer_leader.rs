//! `flo cluster transfer-leader`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{GetStatusRequest, TransferLeaderRequest};
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo cluster transfer-leader
  flo cluster transfer-leader 3";

/// Have another voter lead, as before the leader's machine is stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TransferLeader {
    /// The voter that is to lead; the one that follows most closely when absent
    node_id: Option<u64>,
}

#[derive(Debug, Serialize)]
struct TransferredView {
    leader: Option<u64>,
    changed: bool,
}

impl TransferLeader {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let request = TransferLeaderRequest {
            node_id: self.node_id,
        };
        let changed = client.transfer_leader(request).await?.changed;
        let leader = match self.node_id {
            Some(node_id) => Some(node_id),
            None => client.get_status(GetStatusRequest {}).await?.leader,
        };
        let view = TransferredView { leader, changed };
        session.output.value(&view, |view| match view.leader {
            Some(leader) if view.changed => format!("node {leader} leads now"),
            Some(leader) => format!("node {leader} leads already"),
            None => "the leader has handed over; its successor is about to lead".to_owned(),
        })
    }
}
