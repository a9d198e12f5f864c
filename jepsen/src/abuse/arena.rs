//! The cluster of an attack, and the tasks of the attackers.

use super::freezing_disk::{FreezingDisk, Mounted};
use super::memory_group::{MemoryGroup, MemoryLimit};
use super::{Needs, memory};
use flotilla_client::{Client, ClientOptions, TlsIdentity, TlsOptions};
use flotilla_tests::{Certificates, Cluster, Host, Scratch, TIMEOUT, wait_until};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddrV4;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// The ids of the nodes.
const IDS: [u64; 3] = [1, 2, 3];

/// A port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    Clients,
    Peers,
    Http,
}

/// The cluster of an attack, and the tasks of the attackers.
pub(super) struct Arena {
    // The tasks are dropped before the cluster.
    pub(super) runtime: Runtime,
    /// A runtime with its own thread, so that attackers do not delay honest clients.
    attackers: Runtime,
    pub(super) cluster: Cluster,
    /// The disks of the nodes, by their ids, if they can hang. Dropped after the processes that use them.
    disks: BTreeMap<u64, Mounted>,
    /// The control groups of the nodes, if these limit their memory. Dropped after the processes that are in them.
    memory_groups: Vec<MemoryGroup>,
    attack: CancellationToken,
    is_secured: bool,
}

impl Arena {
    /// Starts three nodes, and waits until they are healthy.
    ///
    /// # Panics
    /// When they do not come up.
    pub(super) fn set(needs: &Needs) -> Self {
        let scratch = Scratch::new();
        let mut hosts = IDS.map(|id| host(id, needs));
        let mut disks = BTreeMap::new();
        for host in hosts.iter_mut().filter(|_| needs.has_freezing_disks) {
            let disk = FreezingDisk::mount();
            host.data_dir = Some(disk.folder().join("data"));
            disks.insert(host.node_id, disk);
        }
        let memory_groups = limit_memory(&mut hosts, needs);
        let memory = format!("--max-memory-bytes={}", needs.memory_bytes);
        let limit: &[&str] = match memory_groups.is_empty() {
            true => &[&memory],
            false => &[],
        };
        let flags = [limit, needs.flags].concat();
        let cluster = if needs.is_secured {
            let certificates = Certificates::make(scratch.path("certificates"));
            Cluster::secured_on(scratch, &hosts, &flags, certificates)
        } else {
            Cluster::on(scratch, &hosts, &flags)
        };
        cluster.await_health();
        Self {
            cluster,
            disks,
            memory_groups,
            runtime: runtime(0),
            attackers: runtime(needs.attackers_nice),
            attack: CancellationToken::new(),
            is_secured: needs.is_secured,
        }
    }

    /// Starts a task of an attacker, which ends with the attack.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let attack = self.attack.clone();
        self.attackers.spawn(async move {
            tokio::select! {
                () = attack.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Ends the tasks of the attackers.
    pub(super) fn end_attack(&self) {
        self.attack.cancel();
    }

    /// Lets time pass.
    pub(super) fn pass(&self, time: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(time).await });
    }

    /// The addresses of a port on all nodes.
    pub(super) fn addresses(&self, port: Port) -> Vec<SocketAddrV4> {
        let offset = match port {
            Port::Clients => 0,
            Port::Peers => 1,
            Port::Http => 2,
        };
        let nodes = self.cluster.nodes().iter();
        nodes
            .map(|node| SocketAddrV4::new(node.host().ip, node.host().port + offset))
            .collect()
    }

    /// The address of the leader's port for clients.
    pub(super) fn leader_address(&self) -> SocketAddrV4 {
        let leader = self.cluster.leader();
        let host = self.cluster.node(leader).host();
        SocketAddrV4::new(host.ip, host.port)
    }

    /// Where probes are answered without TLS.
    pub(super) fn probed(&self) -> Vec<SocketAddrV4> {
        match self.is_secured {
            true => Vec::new(),
            false => self.addresses(Port::Http),
        }
    }

    /// A client that calls the nodes, beginning with one of them. Its calls take at most `timeout`.
    ///
    /// # Panics
    /// When an endpoint is not an address.
    pub(super) fn client(&self, first: usize, timeout: Duration) -> Client {
        let _guard = self.runtime.enter();
        self.connect(first, timeout)
    }

    /// As [`Self::client`], for an attacker.
    pub(super) fn attacker(&self, first: usize, timeout: Duration) -> Client {
        let _guard = self.attackers.enter();
        self.connect(first, timeout)
    }

    fn connect(&self, first: usize, timeout: Duration) -> Client {
        let mut endpoints = self.cluster.endpoints();
        let count = endpoints.len();
        endpoints.rotate_left(first % count);
        let connected = Client::connect(ClientOptions {
            endpoints,
            timeout,
            tls: self.is_secured.then(|| self.tls()),
            ..ClientOptions::default()
        });
        connected.expect("the endpoints are addresses")
    }

    fn tls(&self) -> TlsOptions {
        let certificates = self.cluster.certificates();
        TlsOptions {
            ca: certificates.path("ca.pem"),
            identity: Some(TlsIdentity {
                cert: certificates.path("client.pem"),
                key: certificates.path("client-key.pem"),
            }),
        }
    }

    /// The term of the cluster.
    pub(super) fn term(&self) -> u64 {
        wait_until("a status", TIMEOUT, || {
            let mut said = String::new();
            for node in self.cluster.nodes() {
                match node.status() {
                    Ok(status) => return Ok(status.term),
                    Err(error) => said = error,
                }
            }
            Err(said)
        })
    }

    /// The ids of the nodes whose processes have ended by themselves.
    pub(super) fn ended(&self) -> Vec<u64> {
        let nodes = self.cluster.nodes().iter();
        let ended = nodes.filter(|node| node.process_id().is_some() && !node.is_alive());
        ended.map(|node| node.id()).collect()
    }

    /// Forgets the peaks of memory until now.
    pub(super) fn reset_peaks(&self) {
        self.process_ids().for_each(memory::reset_peak);
    }

    /// The most memory that each node has used, in bytes.
    pub(super) fn peaks(&self) -> Vec<u64> {
        self.process_ids().map(memory::peak_bytes).collect()
    }

    /// How the memory of the nodes is limited.
    pub(super) fn memory_limit(&self) -> MemoryLimit {
        match self.memory_groups.is_empty() {
            true => MemoryLimit::Flag,
            false => MemoryLimit::ControlGroup,
        }
    }

    /// How many processes of the nodes the system has killed because the memory of their group was used up.
    pub(super) fn oom_kills(&self) -> u64 {
        self.memory_groups.iter().map(MemoryGroup::oom_kills).sum()
    }

    fn process_ids(&self) -> impl Iterator<Item = u32> {
        let nodes = self.cluster.nodes().iter();
        nodes.filter_map(flotilla_tests::Node::process_id)
    }

    /// The disk of a node.
    ///
    /// # Panics
    /// When the attack needs no disks that can hang.
    pub(super) fn disk(&self, node: u64) -> FreezingDisk {
        let disk = self.disks.get(&node);
        disk.expect("the attack needs disks that can hang")
            .disk()
            .clone()
    }
}

/// A runtime with one worker thread, whose nice value is raised by `nice`.
fn runtime(nice: i32) -> Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .on_thread_start(move || {
            // On Linux, `nice` changes only the calling thread, not the process.
            rustix::process::nice(nice).expect("a thread may lower its priority");
        })
        .build();
    runtime.expect("a machine that runs a cluster has room for a thread")
}

fn host(id: u64, needs: &Needs) -> Host {
    let mut host = Host::local(id);
    if let Some(files) = needs.open_files {
        let limit = format!("--nofile={files}:{files}");
        host.launcher = vec![OsString::from("prlimit"), limit.into()];
    }
    host
}

/// Puts each host's process into a control group, if the attack wants that and the machine allows it for all of them.
fn limit_memory(hosts: &mut [Host], needs: &Needs) -> Vec<MemoryGroup> {
    let make = |host: &Host| {
        let name = format!("flo-abuse-{}-{}", std::process::id(), host.port);
        MemoryGroup::make(&name, needs.memory_bytes)
    };
    let wanting = needs.has_memory_groups.then_some(&*hosts);
    let groups = wanting.and_then(|hosts| hosts.iter().map(make).collect::<Option<Vec<_>>>());
    let groups = groups.unwrap_or_default();
    for (host, group) in hosts.iter_mut().zip(&groups) {
        let inner = std::mem::replace(&mut host.launcher, group.launcher());
        host.launcher.extend(inner);
    }
    groups
}
