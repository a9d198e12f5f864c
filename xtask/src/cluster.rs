//! Three nodes of `flo` on this machine.

mod node;
mod ports;
mod status;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::patience::wait_for;
use crate::process::{self, Process};
use node::Node;
use ports::Ports;
use status::Status;

/// How long the cluster may take to do what it does in seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The three nodes of `deploy/local`, on ports and in folders of their own.
pub(crate) struct Cluster {
    binary: PathBuf,
    nodes: Vec<Node>,
}

/// A node's id, from 1.
pub(crate) type NodeId = u64;

/// The node that leads, and its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) node_id: NodeId,
    pub(crate) term: u64,
}

/// What all replicas agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) index: u64,
    pub(crate) value: String,
}

impl Cluster {
    /// Starts the nodes. Their data and logs go to the folder.
    ///
    /// # Errors
    /// If there are no free ports, or a node does not start.
    pub(crate) fn start(binary: &Path, folder: &Path) -> Result<Self> {
        let ports = ports::choose()?;
        let peers = Ports::peers(&ports);
        let mut nodes = Vec::new();
        for (node_id, ports) in (1..).zip(ports) {
            let mut server = node::server(binary, node_id, ports);
            server.args(["--peers", &peers]).arg("--data-dir");
            server.arg(folder.join(format!("node{node_id}")));
            let log = folder.join(format!("node{node_id}.log"));
            nodes.push(Node::start(node_id, ports, server, log)?);
        }
        Ok(Self {
            binary: binary.to_owned(),
            nodes,
        })
    }

    /// The ids of all nodes.
    pub(crate) fn node_ids(&self) -> impl Iterator<Item = NodeId> + Clone {
        self.nodes.iter().map(Node::id)
    }

    /// Where a node serves clients.
    pub(crate) fn endpoint(&self, node_id: NodeId) -> String {
        self.node(node_id).endpoint()
    }

    /// A node's process.
    pub(crate) fn process(&self, node_id: NodeId) -> &Process {
        self.node(node_id).process()
    }

    /// A client that knows all nodes.
    pub(crate) fn client(&self) -> Client<'_> {
        self.client_of(|_| true)
    }

    /// A client that knows some of the nodes.
    pub(crate) fn client_of(&self, is_known: impl Fn(NodeId) -> bool) -> Client<'_> {
        let known = self.nodes.iter().filter(|node| is_known(node.id()));
        let endpoints: Vec<String> = known.map(Node::endpoint).collect();
        Client::new(&self.binary, &endpoints)
    }

    /// Where all nodes serve clients, as `flo --endpoint` takes it.
    pub(crate) fn endpoints(&self) -> String {
        let endpoints: Vec<String> = self.nodes.iter().map(Node::endpoint).collect();
        endpoints.join(",")
    }

    /// Waits until one of the nodes that are not `dead` leads.
    ///
    /// # Errors
    /// If none does in time, or another node has ended.
    pub(crate) fn wait_for_leader(
        &mut self,
        dead: Option<NodeId>,
        interrupt: &Interrupt,
    ) -> Result<Leader> {
        wait_for("a leader", LIMIT, interrupt, || {
            self.expect_running(dead)?;
            let client = self.client_of(|node_id| Some(node_id) != dead);
            let leader = status(&client).and_then(|status| status.leader);
            Ok(leader.filter(|leader| Some(leader.node_id) != dead))
        })
    }

    /// Waits until all nodes have applied the same log and agree on the state.
    ///
    /// # Errors
    /// If they disagree, do not catch up in time, or one has ended.
    pub(crate) fn wait_for_agreement(&mut self, interrupt: &Interrupt) -> Result<Digest> {
        wait_for("the nodes to agree", LIMIT, interrupt, || {
            self.expect_running(None)?;
            let Some(status) = status(&self.client()) else {
                return Ok(None);
            };
            status.agreement(self.nodes.len())
        })
    }

    /// Kills a node with SIGKILL, and says when.
    ///
    /// # Errors
    /// If the system refuses it.
    pub(crate) fn kill(&mut self, node_id: NodeId) -> Result<Instant> {
        let killed_at = Instant::now();
        self.node_mut(node_id).kill()?;
        Ok(killed_at)
    }

    /// Starts a node that was killed, on its old ports and its old data.
    ///
    /// # Errors
    /// If it does not start.
    pub(crate) fn restart(&mut self, node_id: NodeId) -> Result<()> {
        self.node_mut(node_id).restart()
    }

    /// Asks all nodes to stop and waits until they have.
    ///
    /// # Errors
    /// If one does not, or ends with another exit code than 0.
    pub(crate) fn stop(mut self, interrupt: &Interrupt) -> Result<()> {
        process::stop_all(self.nodes.iter_mut().map(Node::process_mut), interrupt)
    }

    fn expect_running(&mut self, dead: Option<NodeId>) -> Result<()> {
        let mut living = self.nodes.iter_mut();
        let mut living = living.by_ref().filter(|node| Some(node.id()) != dead);
        living.try_for_each(|node| node.process_mut().expect_running())
    }

    fn node(&self, node_id: NodeId) -> &Node {
        let mut nodes = self.nodes.iter();
        let node = nodes.find(|node| node.id() == node_id);
        node.expect("ids come from this cluster")
    }

    fn node_mut(&mut self, node_id: NodeId) -> &mut Node {
        let mut nodes = self.nodes.iter_mut();
        let node = nodes.find(|node| node.id() == node_id);
        node.expect("ids come from this cluster")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            // A node leaves nothing behind, so there is no need to ask it first. This fails only if
            // it has ended.
            let _ = node.kill();
        }
    }
}

/// The cluster as whoever answers sees it; nothing while nobody does.
fn status(client: &Client<'_>) -> Option<Status> {
    let object = client
        .object(&["cluster", "status", "--timeout", "2s"])
        .ok()?;
    Status::read(&object).ok()
}
