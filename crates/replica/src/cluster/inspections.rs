//! Asks a member what waits on it.

use crate::cluster::consensus_view::ConsensusView;
use crate::inspection::{InspectError, Inspector};
use crate::network::forward::{ForwardError, ForwardKind};
use crate::network::links::Links;
use crate::network::local::Local;
use crate::network::protocol::{Inspect, forward_request, forward_response};
use bytes::Bytes;
use flotilla_engine::NodeId;
use std::sync::Arc;
use tokio::time::Instant;

/// Answers what waits on any member.
pub(crate) struct Inspections {
    pub(crate) inspector: Arc<dyn Inspector>,
    pub(crate) local: Arc<Local>,
    pub(crate) links: Arc<Links>,
    pub(crate) consensus: ConsensusView,
}

impl Inspections {
    /// What waits on this member, in the encoding of its server.
    pub(crate) fn inspect_here(&self, rows_max: u32) -> Bytes {
        self.inspector.inspect(rows_max)
    }

    /// What waits on a member, in the encoding of its server.
    pub(crate) async fn inspect(
        &self,
        node_id: NodeId,
        rows_max: u32,
        deadline: Instant,
    ) -> Result<Bytes, InspectError> {
        if node_id.0 == self.local.node_id {
            return require_started(node_id, self.inspect_here(rows_max));
        }
        let membership = self.consensus.membership();
        let member = membership.get_node(&node_id.0);
        let member = member.ok_or(InspectError::NodeNotMember(node_id))?;
        let link = self
            .links
            .forward(node_id.0, &member.peer_address, ForwardKind::Control);
        let body = forward_request::Body::Inspect(Inspect { rows_max });
        match link.ask(body, deadline).await {
            Ok(forward_response::Answer::Inspection(inspection)) => {
                require_started(node_id, inspection)
            }
            Ok(_) | Err(ForwardError::NotSent | ForwardError::QueueFull | ForwardError::Lost) => {
                Err(InspectError::NodeUnresponsive(node_id))
            }
        }
    }
}

/// Rejects an empty inspection. A node returns one only while it starts; it must not look like a node on which nothing waits.
fn require_started(node_id: NodeId, inspection: Bytes) -> Result<Bytes, InspectError> {
    match inspection.is_empty() {
        true => Err(InspectError::NodeStarting(node_id)),
        false => Ok(inspection),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_inspection_is_that_of_a_node_that_starts() {
        let node_id = NodeId(2);
        let refused = require_started(node_id, Bytes::new());
        assert_eq!(refused, Err(InspectError::NodeStarting(node_id)));
        let inspection = Bytes::from_static(b"something");
        assert_eq!(require_started(node_id, inspection.clone()), Ok(inspection));
    }
}
