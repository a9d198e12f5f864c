//! The stage of a run: a cluster, its network, its disks and its clocks.

mod credentials;
mod disk;
pub(crate) mod faults;
mod service;
mod threads;

use self::credentials::Credentials;
use self::disk::SmallDisk;
use crate::nemesis::Needs;
use crate::network::{Namespaces, Network, Proxies, Wanted};
use crate::release::Release;
use crate::workload::Nodes;
use flotilla_tests::{Cluster, Host, Node, Scratch};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use service::await_service;

/// The stage of a run.
pub struct Stage {
    // Dropped in this order: the processes before what they use.
    pub(crate) cluster: Cluster,
    pub(crate) network: Network,
    pub(crate) disks: BTreeMap<u64, SmallDisk>,
    /// The certificates, with TLS.
    credentials: Option<Credentials>,
    /// The release whose data the nodes started with; `None` for empty disks.
    pub(crate) release: Option<Release>,
    /// The member that is not started yet.
    absent: Option<Host>,
    /// Draws the random decisions of faults.
    pub(crate) random: StdRng,
    /// Environment variables of every node.
    environment: Vec<(String, String)>,
    /// Why the network is not of the preferred kind, if it is not.
    pub(crate) remarks: Vec<String>,
}

impl Stage {
    /// Sets up the stage as a nemesis needs it, and waits for a healthy cluster. `environment` is set for every
    /// node.
    ///
    /// # Panics
    /// When the machine does not allow it, or the cluster does not come up.
    pub(crate) fn set(needs: &Needs, seed: u64, environment: &[(String, String)]) -> Self {
        let scratch = Scratch::new();
        let ids: Vec<u64> = (1..=needs.nodes).collect();
        let mut remarks = Vec::new();
        let network = network(needs.network, &ids, &mut remarks);
        let release = needs.has_release_data.then(Release::previous);
        let credentials = needs
            .has_certificates
            .then(|| Credentials::issue(&scratch, &ids));
        let mut disks = BTreeMap::new();
        let hosts = ids.iter().map(|&id| {
            let mut host = match &release {
                Some(release) => release.host(id),
                None => host(id, &network, &scratch),
            };
            host.environment = variables(&scratch, id, environment);
            host.certificates = credentials.as_ref().map(|all| all.node(id).clone());
            if needs.small_disks {
                let disk = SmallDisk::mount(&scratch.path(&format!("disk-{id}")));
                host.data_dir = Some(disk.folder().join("data"));
                disks.insert(id, disk);
            }
            host
        });
        let mut hosts: Vec<Host> = hosts.collect();
        let absent = release.as_ref().and_then(|release| {
            release.unpack(&scratch.path(""));
            // An upgrade ends when the last member runs the new version: clients must work at that time.
            hosts.pop()
        });
        let cluster = match &credentials {
            Some(all) => Cluster::secured_on(scratch, &hosts, needs.flags, all.clients().clone()),
            None => Cluster::on(scratch, &hosts, needs.flags),
        };
        match &absent {
            Some(_) => {
                let _ = cluster.leader();
            }
            None => cluster.await_health(),
        }
        Self {
            cluster,
            network,
            disks,
            credentials,
            release,
            absent,
            random: StdRng::seed_from_u64(seed),
            environment: environment.to_vec(),
            remarks,
        }
    }

    /// How clients reach the running nodes.
    pub(crate) fn nodes(&self) -> Nodes {
        Nodes {
            endpoints: self.cluster.endpoints(),
            http_addresses: self.cluster.http_addresses(),
            tls: self.credentials.as_ref().map(Credentials::tls),
            token: None,
        }
    }

    /// The certificates of the stage.
    ///
    /// # Panics
    /// Without TLS; the nemesis must ask for it.
    pub(crate) fn credentials(&self) -> &Credentials {
        let credentials = self.credentials.as_ref();
        credentials.expect("a stage on which TLS is spoken")
    }

    /// Starts the member that is not started yet, if there is one, and waits until all are healthy.
    pub(crate) fn complete(&mut self) {
        if let Some(host) = self.absent.take() {
            self.cluster.bring(&host);
        }
        self.cluster.await_health();
    }

    /// The ids of all nodes.
    pub(crate) fn ids(&self) -> Vec<u64> {
        self.cluster.ids()
    }

    /// The leader, as a running node reports it; an arbitrary node if none does.
    pub(crate) fn leader(&self) -> u64 {
        let alive = || self.cluster.nodes().iter().filter(|node| node.is_alive());
        let own = |node: &&Node| matches!(node.status(), Ok(status) if status.leader_id == Some(node.id()));
        let leader = alive().find(own).or_else(|| alive().next());
        leader.map_or(1, Node::id)
    }

    /// The ids of the nodes that do not lead.
    pub(crate) fn followers(&self) -> Vec<u64> {
        let leader = self.leader();
        self.ids().into_iter().filter(|&id| id != leader).collect()
    }

    /// Restarts the nodes that are not running, and returns those that had ended by themselves.
    pub(crate) fn raise(&mut self) -> Vec<u64> {
        let mut ended = Vec::new();
        for id in self.ids() {
            let node = self.cluster.node_mut(id);
            if node.is_alive() {
                continue;
            }
            if node.process_id().is_some() {
                node.kill();
                ended.push(id);
            }
            node.restart();
        }
        ended
    }

    /// Replaces a member by a new node with an empty disk, and returns its id, which is new too.
    pub(crate) fn replace(&mut self, id: u64) -> u64 {
        let successor = self.ids().into_iter().max().unwrap_or(id) + 1;
        let (host, ended) = self.cluster.shrink(id);
        assert!(ended.success(), "a removed member ended with {ended}");
        self.succeed(host, successor)
    }

    /// The same for a member that is lost already.
    pub(crate) fn replace_lost(&mut self, id: u64) -> u64 {
        let successor = self.ids().into_iter().max().unwrap_or(id) + 1;
        let host = self.cluster.forget(id);
        self.succeed(host, successor)
    }

    fn succeed(&mut self, mut host: Host, successor: u64) -> u64 {
        host.node_id = successor;
        host.environment = variables(self.cluster.scratch(), successor, &self.environment);
        self.cluster.grow(&host);
        successor
    }

    /// Adds a node with an empty disk, and returns its id.
    pub(crate) fn add(&mut self) -> u64 {
        let id = self.ids().into_iter().max().unwrap_or(0) + 1;
        let mut host = Host::local(id);
        host.environment = variables(self.cluster.scratch(), id, &self.environment);
        self.cluster.grow(&host);
        id
    }

    /// Removes a member for good.
    pub(crate) fn remove(&mut self, id: u64) {
        let (_, ended) = self.cluster.shrink(id);
        assert!(ended.success(), "a removed member ended with {ended}");
        self.cluster.await_health();
    }

    /// Sets the offset of a node's wall clock, in milliseconds.
    pub(crate) fn set_clock(&self, node: u64, offset_ms: i64) {
        self.set_fault(node, "clock", &offset_ms.to_string());
    }

    /// Makes a node's wall clock run too fast or too slow from now on, by this many thousandths.
    pub(crate) fn set_drift(&self, node: u64, per_mille: i64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now
            .expect("the machine's clock is not before 1970")
            .as_millis();
        self.set_fault(node, "clock", &format!("0 {per_mille} {now_ms}"));
    }

    /// Sets how long a node's log takes to become durable.
    pub(crate) fn set_fsync_delay(&self, node: u64, delay: Duration) {
        self.set_fault(node, "fsync", &delay.as_millis().to_string());
    }

    fn set_fault(&self, node: u64, name: &str, text: &str) {
        faults::set(self.cluster.scratch(), node, name, text);
    }

    /// Records what the nodes' threads are doing, beside the logs.
    pub(crate) fn describe_threads(&self) {
        for node in self.cluster.nodes() {
            let name = format!("node-{}.threads", node.id());
            // Only for diagnosis: a failure here must not hide the rest.
            let _ = fs::write(self.logs().join(name), threads::describe(node));
        }
    }

    /// The folder with the logs of the nodes.
    pub(crate) fn logs(&self) -> PathBuf {
        self.cluster.scratch().path("logs")
    }
}

fn network(wanted: Wanted, ids: &[u64], remarks: &mut Vec<String>) -> Network {
    if wanted == Wanted::Plain {
        return Network::Plain;
    }
    if wanted == Wanted::Cuttable {
        match Namespaces::create(ids) {
            Ok(namespaces) => {
                let proven = namespaces.prove();
                proven.unwrap_or_else(|silence| panic!("the network is not sound: {silence}"));
                return Network::Namespaces(namespaces);
            }
            Err(reason) => remarks.push(format!(
                "no network namespaces, so proxies stand between the nodes: {reason} (they need \
                 root and `ip` of the package iproute2)"
            )),
        }
    }
    Network::Proxies(Proxies::new().expect("a machine that runs a cluster has room for a thread"))
}

fn host(id: u64, network: &Network, scratch: &Scratch) -> Host {
    match network {
        Network::Plain => Host::local(id),
        Network::Namespaces(namespaces) => namespaces.host(id),
        Network::Proxies(proxies) => {
            let mut host = Host::local(id);
            let proxy = proxies.before(id, host.peer_address, scratch.path(""));
            host.peer_address = proxy.expect("loopback has free ports");
            host
        }
    }
}

fn variables(
    scratch: &Scratch,
    node: u64,
    environment: &[(String, String)],
) -> Vec<(String, std::ffi::OsString)> {
    let own = [faults::variable(scratch, node)];
    let given = environment.iter();
    let given = given.map(|(name, value)| (name.clone(), value.into()));
    own.into_iter().chain(given).collect()
}

/// The newest file of a folder with this ending.
pub(crate) fn newest(folder: &Path, ending: &str) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let mut named: Vec<PathBuf> = files
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    named.sort();
    named.pop()
}
