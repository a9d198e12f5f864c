//! The cost of a load on the nodes: their counters are sampled before and after it.

use crate::session::Session;
use flotilla_client::Client;
use flotilla_client::v1::{GetNodeUsageRequest, GetStatusRequest, NodeUsage};
use futures::future::join_all;
use std::time::Duration;

/// The timeout of a node's response.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A sample of all nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// The leader; `None` without one, or if no node answered.
    pub(super) leader: Option<u64>,
    /// The members, by id.
    pub(super) nodes: Vec<NodeSnapshot>,
}

/// A sample of one node.
#[derive(Clone, Debug)]
pub(super) struct NodeSnapshot {
    /// Its id.
    pub(super) node_id: u64,
    /// Its address for clients.
    pub(super) address: String,
    /// Its counters; `None` if it did not answer.
    pub(super) usage: Option<NodeUsage>,
}

/// Samples every node that the cluster's status names, at its own address. Errors do not invalidate
/// a measurement: nodes that do not answer have no sample.
pub(super) async fn look(session: &Session, client: &Client) -> Snapshot {
    let client = client.with_timeout(TIMEOUT);
    let Ok(status) = client.get_status(GetStatusRequest {}).await else {
        return Snapshot::default();
    };
    let nodes = status.nodes.into_iter().map(async |node| NodeSnapshot {
        usage: ask(session, node.node_id, &node.address).await,
        node_id: node.node_id,
        address: node.address,
    });
    Snapshot {
        leader: status.leader_id,
        nodes: join_all(nodes).await,
    }
}

/// Samples one node; `None` if it does not answer, or another one does. Uses a new client each
/// time, because one that has learned who leads would call the leader.
async fn ask(session: &Session, node_id: u64, address: &str) -> Option<NodeUsage> {
    let client = session.client_of(address).ok()?.with_timeout(TIMEOUT);
    let usage = client.get_node_usage(GetNodeUsageRequest {}).await.ok()?;
    (usage.node_id == node_id).then_some(usage)
}
