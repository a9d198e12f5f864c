//! What a load costs the nodes: each is asked before and after.

use crate::session::Session;
use flotilla_client::Client;
use flotilla_client::v1::{GetNodeUsageRequest, GetStatusRequest, NodeUsage};
use futures::future::join_all;
use std::time::Duration;

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// All nodes at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// The node that led; none when none did, or when nobody answered.
    pub(super) leader: Option<u64>,
    /// The members, by id.
    pub(super) nodes: Vec<NodeSnapshot>,
}

/// One node at one time.
#[derive(Clone, Debug)]
pub(super) struct NodeSnapshot {
    /// Its id.
    pub(super) node_id: u64,
    /// Where clients reach it.
    pub(super) address: String,
    /// What it said; none when it did not answer.
    pub(super) usage: Option<NodeUsage>,
}

/// Asks every node that the cluster's status names, at its own address. What goes wrong is no reason to lose a
/// measurement: nodes that do not answer have said nothing.
pub(super) async fn look(session: &Session, client: &Client) -> Snapshot {
    let client = client.with_timeout(PATIENCE);
    let Ok(status) = client.get_status(GetStatusRequest {}).await else {
        return Snapshot::default();
    };
    let nodes = status.nodes.into_iter().map(async |node| NodeSnapshot {
        usage: ask(session, node.node_id, &node.address).await,
        node_id: node.node_id,
        address: node.address,
    });
    Snapshot {
        leader: status.leader,
        nodes: join_all(nodes).await,
    }
}

/// Asks one node; none when another one or nobody answers. By a new client each time, since one that has learnt
/// who leads would ask the leader.
async fn ask(session: &Session, node_id: u64, address: &str) -> Option<NodeUsage> {
    let client = session.client_of(address).ok()?.with_timeout(PATIENCE);
    let usage = client.get_node_usage(GetNodeUsageRequest {}).await.ok()?;
    (usage.node_id == node_id).then_some(usage)
}
