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

/// Transfer leadership to another voter, for example before stopping the leader's machine
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TransferLeader {
    /// Voter that is to lead [default: the most up-to-date voter]
    node_id: Option<u64>,
}

#[derive(Debug, Serialize)]
struct TransferredView {
    leader_id: Option<u64>,
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
            None => client.get_status(GetStatusRequest {}).await?.leader_id,
        };
        let view = TransferredView {
            leader_id: leader,
            changed,
        };
        session.output.value(&view, |view| match view.leader_id {
            Some(leader) if view.changed => format!("node {leader} is now the leader"),
            Some(leader) => format!("node {leader} is already the leader"),
            None => "leadership is handed over; the new leader is about to take over".to_owned(),
        })
    }
}
