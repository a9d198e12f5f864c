//! Several `flo server` processes that form one cluster.

use crate::certificates::Certificates;
use crate::flo::Flo;
use crate::host::Host;
use crate::node::{Node, Settings};
use crate::process_slots::ProcessSlots;
use crate::scratch::Scratch;
use crate::status::{ClusterStatus, Digest};
use crate::wait::{TIMEOUT, wait_until};
use std::fs;
use std::process::ExitStatus;

/// A cluster of separate node processes on this machine.
#[derive(Debug)]
pub struct Cluster {
    // Dropped in this order: the processes before their folder, the process slots last.
    nodes: Vec<Node>,
    scratch: Scratch,
    flags: Vec<String>,
    certificates: Option<Certificates>,
    /// The token that administers it, if it is closed.
    token: Option<String>,
    _process_slots: ProcessSlots,
}

/// What calls to a cluster show.
#[derive(Debug, Default)]
struct Credentials {
    certificates: Option<Certificates>,
    token: Option<String>,
}

impl Cluster {
    /// Starts three nodes and waits until they have a leader and are healthy.
    #[must_use]
    pub fn start() -> Self {
        Self::of(&[1, 2, 3], &[])
    }

    /// Starts nodes with these ids and these further flags, and waits until they have a leader and
    /// are healthy.
    ///
    /// # Panics
    /// When the nodes do not become a cluster.
    #[must_use]
    pub fn of(ids: &[u64], flags: &[&str]) -> Self {
        let hosts: Vec<Host> = ids.iter().map(|&id| Host::local(id)).collect();
        let cluster = Self::on(Scratch::new(), &hosts, flags);
        cluster.await_health();
        cluster
    }

    /// Starts three nodes that form a closed cluster, and waits until they have a leader and are healthy. Calls to it have the
    /// token that administers it.
    ///
    /// # Panics
    /// When the nodes do not become a cluster.
    #[must_use]
    pub fn closed() -> Self {
        Self::closed_with(&[])
    }

    /// The same, with these further flags.
    #[must_use]
    pub fn closed_with(flags: &[&str]) -> Self {
        let cluster = Self::unformed_closed_with(flags);
        cluster.form();
        cluster.await_health();
        cluster
    }

    /// Starts three nodes without waiting: they are to form a closed cluster.
    ///
    /// # Panics
    /// When no token can be made.
    #[must_use]
    pub fn unformed_closed() -> Self {
        Self::unformed_closed_with(&[])
    }

    fn unformed_closed_with(further: &[&str]) -> Self {
        let scratch = Scratch::new();
        let file = scratch.path("bootstrap.token").display().to_string();
        let _ = Flo::at("").text(&["token", "generate", &file]);
        let token = fs::read_to_string(&file).expect("it was written");
        let token = token.trim_end().to_owned();
        let hosts = [1, 2, 3].map(Host::local);
        let flags = ["--access", "closed", "--bootstrap-token-file", &file];
        Self::begin(
            scratch,
            &hosts,
            &[&flags, further].concat(),
            Credentials {
                token: Some(token),
                ..Credentials::default()
            },
        )
    }

    /// Starts three nodes with TLS, each with a separate certificate, and waits until they have a leader
    /// and are healthy.
    #[must_use]
    pub fn secured() -> Self {
        Self::secured_with(&[])
    }

    /// The same, with these further flags.
    #[must_use]
    pub fn secured_with(flags: &[&str]) -> Self {
        let scratch = Scratch::new();
        let certificates = Certificates::make(scratch.path("certificates"));
        let hosts = [1, 2, 3].map(Host::local);
        let cluster = Self::secured_on(scratch, &hosts, flags, certificates);
        cluster.await_health();
        cluster
    }

    /// Starts a node on each of these hosts, with these further flags, and waits until the cluster is formed.
    ///
    /// # Panics
    /// When it is not formed.
    #[must_use]
    pub fn on(scratch: Scratch, hosts: &[Host], flags: &[&str]) -> Self {
        let cluster = Self::unformed_on(scratch, hosts, flags);
        cluster.form();
        cluster
    }

    /// Starts a node on each of these hosts, with these further flags, without waiting: the cluster is not formed.
    #[must_use]
    pub fn unformed_on(scratch: Scratch, hosts: &[Host], flags: &[&str]) -> Self {
        Self::begin(scratch, hosts, flags, Credentials::default())
    }

    /// The same over TLS: clients use these certificates, and so do nodes whose hosts have none.
    ///
    /// # Panics
    /// When the cluster is not formed.
    #[must_use]
    pub fn secured_on(
        scratch: Scratch,
        hosts: &[Host],
        flags: &[&str],
        certificates: Certificates,
    ) -> Self {
        let certificates = Credentials {
            certificates: Some(certificates),
            ..Credentials::default()
        };
        let cluster = Self::begin(scratch, hosts, flags, certificates);
        cluster.form();
        cluster
    }

    fn begin(scratch: Scratch, hosts: &[Host], flags: &[&str], credentials: Credentials) -> Self {
        let process_slots = ProcessSlots::take(hosts.len());
        let peers: Vec<_> = hosts
            .iter()
            .map(|host| (host.node_id, host.peer_address))
            .collect();
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let settings = hosts
            .iter()
            .map(|host| Settings::first(&scratch, host, &peers));
        let settings: Vec<Settings> = settings.collect();
        let mut cluster = Self {
            nodes: Vec::new(),
            scratch,
            flags,
            certificates: credentials.certificates,
            token: credentials.token,
            _process_slots: process_slots,
        };
        for settings in settings {
            cluster.spawn(settings);
        }
        cluster
    }

    /// Forms the cluster, and waits until it is formed.
    ///
    /// # Panics
    /// When it is not formed.
    pub fn form(&self) {
        let flo = self.flo();
        wait_until("the cluster to be formed", TIMEOUT, || {
            // Until a node listens, connections to it fail.
            let answer = flo.run(&["--timeout", "30s", "cluster", "form"]);
            if answer.code == 0 {
                return Ok(());
            }
            Err(answer.show())
        });
    }

    fn spawn(&mut self, settings: Settings) {
        let certificates = settings.certificates.clone();
        self.nodes.push(Node::start(Settings {
            flags: self.flags.clone(),
            certificates: certificates.or_else(|| self.certificates.clone()),
            token: self.token.clone(),
            ..settings
        }));
    }

    /// Starts a node on this host, which joins or is already a member and has its data there, without
    /// waiting.
    pub fn bring(&mut self, host: &Host) {
        let member = self.node(self.leader()).host().peer_address;
        self.spawn(Settings::later(&self.scratch, host, member));
    }

    /// Starts a node that joins, and returns once it is a voter and all members are healthy.
    ///
    /// # Panics
    /// When the cluster does not promote it.
    pub fn grow(&mut self, host: &Host) {
        let id = host.node_id.to_string();
        let flo = self.flo();
        self.bring(host);
        let address = host.peer_address.to_string();
        let add = ["--timeout", "30s", "cluster", "add-learner", &id, &address];
        wait_until("the new node to be promoted", TIMEOUT, || {
            // Until it listens, connections to it fail.
            let answer = flo.run(&add);
            if answer.code == 0 {
                return Ok(());
            }
            Err(answer.show())
        });
        drop(flo.text(&["--timeout", "30s", "cluster", "promote", &id]));
        self.await_health();
    }

    /// Removes a member, and returns its host and how its process ended.
    ///
    /// # Panics
    /// When the cluster does not remove it, or it does not end.
    pub fn shrink(&mut self, id: u64) -> (Host, ExitStatus) {
        let mut gone = self.take(id);
        self.remove(id);
        let (status, _) = gone.end();
        (gone.host().clone(), status)
    }

    /// Removes a member whose process has ended for good, and returns its host.
    ///
    /// # Panics
    /// When the cluster does not remove it.
    pub fn forget(&mut self, id: u64) -> Host {
        let gone = self.take(id);
        self.remove(id);
        gone.host().clone()
    }

    fn take(&mut self, id: u64) -> Node {
        let place = self.nodes.iter().position(|node| node.id() == id);
        self.nodes.remove(place.expect("the test knows the nodes"))
    }

    fn remove(&self, id: u64) {
        let remove = ["--timeout", "30s", "cluster", "remove", &id.to_string()];
        drop(self.flo().text(&remove));
    }

    /// The nodes, in the order of their ids.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A folder for the test's files.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// The certificates of nodes with TLS.
    ///
    /// # Panics
    /// When the nodes do not use TLS.
    #[must_use]
    pub fn certificates(&self) -> &Certificates {
        let certificates = self.certificates.as_ref();
        certificates.expect("the test knows whether the nodes have certificates")
    }

    /// The ids of the nodes.
    #[must_use]
    pub fn ids(&self) -> Vec<u64> {
        self.nodes.iter().map(Node::id).collect()
    }

    /// A node.
    ///
    /// # Panics
    /// When there is no node with this id.
    #[must_use]
    pub fn node(&self, id: u64) -> &Node {
        let node = self.nodes.iter().find(|node| node.id() == id);
        node.expect("the test knows the cluster's nodes")
    }

    /// A mutable node.
    ///
    /// # Panics
    /// When there is no node with this id.
    pub fn node_mut(&mut self, id: u64) -> &mut Node {
        let node = self.nodes.iter_mut().find(|node| node.id() == id);
        node.expect("the test knows the cluster's nodes")
    }

    /// The client endpoints of the nodes, in the order of their ids.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.nodes.iter().map(Node::endpoint).collect()
    }

    /// The HTTP addresses of the nodes, as `host:port`, in the order of their ids.
    #[must_use]
    pub fn http_addresses(&self) -> Vec<String> {
        self.nodes.iter().map(Node::http_address).collect()
    }

    /// Calls to any node.
    #[must_use]
    pub fn flo(&self) -> Flo {
        let flo = Flo::at(self.endpoints().join(","));
        let flo = match &self.certificates {
            Some(certificates) => flo.with_certificates(certificates),
            None => flo,
        };
        match &self.token {
            Some(token) => flo.with_token(token),
            None => flo,
        }
    }

    /// Calls to one node.
    #[must_use]
    pub fn flo_at(&self, id: u64) -> Flo {
        self.node(id).flo()
    }

    /// Kills a node with SIGKILL.
    pub fn kill(&mut self, id: u64) {
        self.node_mut(id).kill();
    }

    /// Restarts a node that was killed or stopped.
    pub fn restart(&mut self, id: u64) {
        self.node_mut(id).restart();
    }

    /// Waits until a running node reports that it leads, and returns its id.
    ///
    /// # Panics
    /// When none does.
    #[must_use]
    pub fn leader(&self) -> u64 {
        wait_until("a leader", TIMEOUT, || {
            let mut seen = String::from("no node leads:");
            for node in self.nodes.iter().filter(|node| node.is_running()) {
                let node_id = node.id();
                match node.status() {
                    Ok(status) if status.leader_id == Some(node_id) => return Ok(node_id),
                    other => seen.push_str(&format!("\nnode {node_id} says {other:?}")),
                }
            }
            Err(seen)
        })
    }

    /// The ids of the running nodes that do not lead.
    #[must_use]
    pub fn followers(&self) -> Vec<u64> {
        let leader = self.leader();
        let running = self.nodes.iter().filter(|node| node.is_running());
        running.map(Node::id).filter(|&id| id != leader).collect()
    }

    /// Waits until the leader reports every member as healthy.
    ///
    /// # Panics
    /// When that does not happen in time.
    pub fn await_health(&self) {
        wait_until("healthy members", TIMEOUT, || {
            let status = self.node(self.leader()).status()?;
            let is_whole = status.nodes.len() == self.nodes.len();
            if is_whole && status.nodes.iter().all(|node| node.healthy) {
                return Ok(());
            }
            Err(format!("the leader reports {status:?}"))
        });
    }

    /// Waits until every node reports the same digest at the same index, and returns it.
    ///
    /// # Panics
    /// When they differ at one index, or do not reach the same one.
    #[must_use]
    pub fn agreement(&self) -> Digest {
        wait_until("equal digests", TIMEOUT, || {
            let digests: Vec<Digest> = self
                .nodes
                .iter()
                .map(own_digest)
                .collect::<Result<_, String>>()?;
            for (left, right) in digests.iter().zip(&digests[1..]) {
                if left.index != right.index {
                    return Err(format!("they are at different indexes: {digests:?}"));
                }
                assert_eq!(left, right, "replicas differ: {digests:?}");
            }
            Ok(digests[0].clone())
        })
    }
}

/// A node's digest at its applied index.
fn own_digest(node: &Node) -> Result<Digest, String> {
    let status: ClusterStatus = node.status()?;
    let own = status.node(node.id());
    own.digest
        .clone()
        .ok_or_else(|| format!("a node has no digest: {own:?}"))
}
