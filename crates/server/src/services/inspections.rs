//! What other nodes report about themselves, for checks before the cluster changes.

use crate::access::CallContext;
use crate::errors::{Refusal, ServerCode};
use flotilla_api::v1;
use flotilla_engine::NodeId;
use futures::future::join_all;
use prost::Message;
use std::time::Duration;
use tokio::time::Instant;

/// How long a node may take to report.
const NODE_DEADLINE: Duration = Duration::from_secs(2);

/// What a node reports.
pub(super) struct Inspected {
    node: NodeId,
    /// `None` if it does not respond in time.
    pub(super) inspection: Option<v1::NodeInspection>,
}

impl Inspected {
    /// Inspects one node.
    pub(super) async fn of(context: &CallContext, node: NodeId, deadline: Instant) -> Self {
        let replica = context.gateway.home().replica();
        let deadline = deadline.min(Instant::now() + NODE_DEADLINE);
        let inspection = replica.inspect(node, 0, deadline).await.ok();
        Self {
            node,
            inspection: inspection.and_then(|bytes| v1::NodeInspection::decode(bytes).ok()),
        }
    }

    /// Inspects all voters.
    pub(super) async fn voters(context: &CallContext, deadline: Instant) -> Vec<Self> {
        let nodes = context.gateway.home().replica().status().await.nodes;
        let voters = nodes.iter().filter(|node| node.is_voter);
        join_all(voters.map(|voter| Self::of(context, voter.node_id, deadline))).await
    }

    /// Checks that the node has the keyring of this one, which a closed cluster needs.
    pub(super) fn check_keyring(&self, context: &CallContext) -> Result<(), Refusal> {
        let own = context.keyring.summary();
        let found = match &self.inspection {
            None => "it does not respond",
            Some(inspection) if inspection.keyring.is_empty() => "its keyring is missing",
            Some(inspection) if inspection.keyring != own => "it has another keyring",
            Some(_) => return Ok(()),
        };
        let text = format!(
            "expected node {} to have the keyring of node {}, but {found}",
            self.node.0, context.node.0
        );
        Err(Refusal::new(ServerCode::KeyringsDiffer, text).with_hint(
            "copy one keyring to all nodes, set `keyring_file`, and restart them one by one; `flo cluster inspect` shows the keys \
             of a node",
        ))
    }
}
