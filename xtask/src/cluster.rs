//! Three `flo` nodes on this machine.

mod node;
mod ports;
mod status;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client::{Client, Variables};
use crate::flo;
use crate::interrupt::Interrupt;
use crate::process::{self, Process};
use crate::wait::wait_for;
use node::Node;
use ports::Ports;
pub(crate) use ports::{PORT_CONFIGURED, PORT_MAX, address, free as free_ports};
use status::Status;

/// How long the cluster may take for what takes seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Where data and logs go.
pub(crate) const OWN: &str = ".flo";

/// Where the files of `deploy/local` look for certificates.
const CERTIFICATES: &str = ".flo/certificates";

/// Three nodes: those of `deploy/local`, or plain ones without TLS.
pub(crate) struct Cluster {
    binary: PathBuf,
    /// Where data and logs are.
    folder: PathBuf,
    /// `None` without TLS.
    certificates: Option<PathBuf>,
    nodes: Vec<Node>,
}

/// Where the nodes listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// Node 1 on this port and the next two, the others on the ports 10 and 20 above: with 9000 as in their
    /// files.
    From(u16),
    /// On free ports, so that the nodes do not disturb a running cluster.
    Anywhere,
}

/// A node's id, from 1.
pub(crate) type NodeId = u64;

/// The leader and its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) node_id: NodeId,
    pub(crate) term: u64,
}

/// The state on which all replicas agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) index: u64,
    pub(crate) value: String,
}

impl Cluster {
    /// Starts the nodes in the folder, and forms their cluster unless it is formed. Their data and certificates are in
    /// `.flo` below it, as their files say, and so are their logs.
    ///
    /// # Errors
    /// If there are no free ports, no certificates can be made, a node does not start, or no cluster is formed in time.
    pub(crate) fn start(
        binary: &Path,
        folder: &Path,
        listening: Listening,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        make_folder(folder)?;
        make_certificates(binary, folder)?;
        let ports = match listening {
            Listening::From(port) => ports::from(port),
            Listening::Anywhere => ports::choose()?,
        };
        let peers = Ports::peers(&ports);
        let server = |node_id, ports| {
            let mut server = node::server(binary, node_id);
            if listening != Listening::From(PORT_CONFIGURED) {
                node::listen(&mut server, ports, &peers);
            }
            server
        };
        let nodes = launch(folder, ports, &server)?;
        let certificates = Some(folder.join(CERTIFICATES));
        let mut cluster = Self::of(binary, folder, certificates, nodes);
        cluster.form(interrupt)?;
        Ok(cluster)
    }

    /// Starts nodes on free ports, without TLS, without the files of `deploy/local` and without an earlier cluster in that
    /// folder: for a comparison with other systems without TLS. Their data and logs are in `.flo` below the folder. Returns
    /// once all nodes serve.
    ///
    /// # Errors
    /// If there are no free ports, or a node does not start, or they do not serve in time.
    pub(crate) fn start_afresh(
        binary: &Path,
        folder: &Path,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let earlier = folder.join(OWN);
        if earlier.exists() {
            fs::remove_dir_all(earlier)?;
        }
        make_folder(folder)?;
        let ports = ports::choose()?;
        let peers = Ports::peers(&ports);
        let server = |node_id, ports| {
            let mut server = node::plain_server(binary, node_id);
            node::listen(&mut server, ports, &peers);
            server
        };
        let nodes = launch(folder, ports, &server)?;
        let mut cluster = Self::of(binary, folder, None, nodes);
        cluster.form(interrupt)?;
        cluster.wait_until_all_serve(interrupt)?;
        Ok(cluster)
    }

    fn of(binary: &Path, folder: &Path, certificates: Option<PathBuf>, nodes: Vec<Node>) -> Self {
        Self {
            binary: binary.to_owned(),
            folder: folder.join(OWN),
            certificates,
            nodes,
        }
    }

    /// The ids of all nodes.
    pub(crate) fn node_ids(&self) -> impl Iterator<Item = NodeId> + Clone {
        self.nodes.iter().map(Node::id)
    }

    /// The address at which a node serves clients.
    pub(crate) fn endpoint(&self, node_id: NodeId) -> String {
        self.node(node_id).endpoint()
    }

    /// The addresses at which a node serves clients, peers and HTTP.
    pub(crate) fn addresses(&self, node_id: NodeId) -> [String; 3] {
        self.node(node_id).addresses()
    }

    /// Where a node keeps its data.
    pub(crate) fn data_folder(&self, node_id: NodeId) -> PathBuf {
        self.folder.join(format!("node{node_id}"))
    }

    /// A node's OS process.
    pub(crate) fn process(&self, node_id: NodeId) -> &Process {
        self.node(node_id).process()
    }

    /// A node's OS process, to be checked or stopped.
    pub(crate) fn process_mut(&mut self, node_id: NodeId) -> &mut Process {
        self.node_mut(node_id).process_mut()
    }

    /// A client that knows all nodes.
    pub(crate) fn client(&self) -> Client<'_> {
        self.client_of(|_| true)
    }

    /// A client that knows some of the nodes.
    pub(crate) fn client_of(&self, is_known: impl Fn(NodeId) -> bool) -> Client<'_> {
        Client::new(&self.binary, self.variables_of(is_known))
    }

    /// The environment with which `flo` reaches all nodes.
    pub(crate) fn variables(&self) -> Variables {
        self.variables_of(|_| true)
    }

    fn variables_of(&self, is_known: impl Fn(NodeId) -> bool) -> Variables {
        let known = self.nodes.iter().filter(|node| is_known(node.id()));
        let endpoints: Vec<String> = known.map(Node::endpoint).collect();
        let mut variables = vec![("FLO_ENDPOINT", endpoints.join(","))];
        if let Some(certificates) = &self.certificates {
            let file = |name| certificates.join(name).display().to_string();
            variables.extend([
                ("FLO_TLS_CA", file("ca.pem")),
                ("FLO_TLS_CERT", file("client.pem")),
                ("FLO_TLS_KEY", file("client-key.pem")),
            ]);
        }
        variables
    }

    /// Forms the cluster, unless it is formed.
    fn form(&mut self, interrupt: &Interrupt) -> Result<()> {
        wait_for("the cluster to be formed", LIMIT, interrupt, || {
            self.expect_running(None)?;
            let formed = self.client().object(&["cluster", "form"]);
            Ok(formed.ok().map(drop))
        })
    }

    /// Waits until a node other than `dead` leads.
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

    /// Waits until each node knows a leader.
    ///
    /// # Errors
    /// If a node does not in time, or has ended.
    pub(crate) fn wait_until_all_serve(&mut self, interrupt: &Interrupt) -> Result<()> {
        wait_for("all nodes to serve", LIMIT, interrupt, || {
            self.expect_running(None)?;
            let knows_leader = |node_id| {
                let status = status(&self.client_of(|known| known == node_id));
                status.is_some_and(|status| status.leader.is_some())
            };
            Ok(self.node_ids().all(knows_leader).then_some(()))
        })
    }

    /// Waits until all nodes have applied the same log and agree on the state.
    ///
    /// # Errors
    /// If they disagree, do not catch up in time, or a node has ended.
    pub(crate) fn wait_for_agreement(&mut self, interrupt: &Interrupt) -> Result<Digest> {
        wait_for("the nodes to agree", LIMIT, interrupt, || {
            self.expect_running(None)?;
            let Some(status) = status(&self.client()) else {
                return Ok(None);
            };
            status.agreement(self.nodes.len())
        })
    }

    /// Kills a node with SIGKILL, and returns the time at which it did.
    ///
    /// # Errors
    /// If the system refuses it.
    pub(crate) fn kill(&mut self, node_id: NodeId) -> Result<Instant> {
        let killed_at = Instant::now();
        self.node_mut(node_id).kill()?;
        Ok(killed_at)
    }

    /// Starts a killed node again, on its old ports and with its old data.
    ///
    /// # Errors
    /// If it does not start.
    pub(crate) fn restart(&mut self, node_id: NodeId) -> Result<()> {
        self.node_mut(node_id).restart()
    }

    /// Asks all nodes to stop, and waits until they have.
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

/// Starts a node for each of the ports, with the command that `server` gives for it.
fn launch(
    folder: &Path,
    ports: Vec<Ports>,
    server: &dyn Fn(NodeId, Ports) -> Command,
) -> Result<Vec<Node>> {
    let mut nodes = Vec::new();
    for (node_id, ports) in (1..).zip(ports) {
        let mut server = server(node_id, ports);
        server.current_dir(folder);
        let log = folder.join(OWN).join(format!("node{node_id}.log"));
        nodes.push(Node::start(node_id, ports, server, log)?);
    }
    Ok(nodes)
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            // A node cleans up nothing when it stops, so there is no need to ask it first. This fails only if
            // it has ended.
            let _ = node.kill();
        }
    }
}

fn make_folder(folder: &Path) -> Result<()> {
    let own = folder.join(OWN);
    fs::create_dir_all(&own).with_context(|| format!("expected a folder {}", own.display()))
}

/// Makes certificates for nodes and clients; an existing authority is kept.
fn make_certificates(binary: &Path, folder: &Path) -> Result<()> {
    let mut command = flo::command(binary);
    command.current_dir(folder);
    let output = command.args(["cert", "dev", CERTIFICATES]).output();
    let output = output.context("expected `flo` to start")?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("expected certificates, but `flo cert dev` says {complaint}");
    }
    Ok(())
}

/// The cluster as the first node that answers sees it; `None` while no node answers.
fn status(client: &Client<'_>) -> Option<Status> {
    let object = client
        .object(&["cluster", "status", "--timeout", "2s"])
        .ok()?;
    Status::read(&object).ok()
}
