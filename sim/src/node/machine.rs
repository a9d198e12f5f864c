//! A machine with a member of the cluster: its process comes and goes, its disk and clocks stay.

use super::gateway::Gateway;
use super::member_worker::MemberWorker;
use super::trace::{DriverTrace, watch_assignments};
use crate::bug::Bug;
use crate::cluster::{Cluster, Member};
use crate::disk::{Disk, DiskPace};
use crate::network::{Host, Network, SimulatedTransport, peer_address};
use crate::random::Random;
use crate::record::Record;
use crate::time::{MachineClock, Time};
use flotilla_engine::{AccessMode, InitializeAccess, NodeId};
use flotilla_leader::{Hub, PlantedBug, Schemas};
use flotilla_replica::{
    Config, Environment, Execution, Formation, NoInspector, NoObserver, Replica, Tuning,
};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Longer than any simulation.
const FORMATION_TIMEOUT: Duration = Duration::from_hours(24);

/// What all machines share.
#[derive(Clone)]
pub(crate) struct MachineContext {
    pub(crate) seed: u64,
    pub(crate) time: Time,
    pub(crate) network: Network,
    pub(crate) record: Record,
    pub(crate) tuning: Tuning,
    pub(crate) hosts: Vec<Host>,
    pub(crate) cluster: Cluster,
    /// Whether each node has a worker.
    pub(crate) has_workers: bool,
    pub(crate) bug: Option<Bug>,
}

/// A machine with a member of the cluster.
pub(crate) struct Machine {
    pub(crate) host: Host,
    pub(crate) disk: Disk,
    pub(crate) clock: Arc<MachineClock>,
    pub(crate) pace: Arc<DiskPace>,
    context: MachineContext,
    process: Option<Process>,
    /// The process is stopped until this time, in milliseconds.
    stopped_until_ms: u64,
    /// How long it has been stopped, in milliseconds.
    stopped_ms: u64,
}

/// A running process, or one that is starting.
struct Process {
    /// First, so that all tasks are dropped before what they share.
    runtime: Runtime,
    replica: Arc<OnceLock<Result<Replica, String>>>,
}

impl Machine {
    /// A machine without a process.
    pub(crate) fn new(host: Host, context: MachineContext) -> Self {
        let disk = Disk::default();
        if context.bug == Some(Bug::LostSync) {
            disk.lie();
        }
        let pace = Random::of(context.seed, &format!("pace of {host}"));
        Self {
            host,
            disk,
            clock: Arc::new(MachineClock::new(context.time.clone())),
            pace: Arc::new(DiskPace::new(pace)),
            context,
            process: None,
            stopped_until_ms: 0,
            stopped_ms: 0,
        }
    }

    /// A machine with an empty disk in its place, for a member of the new cluster.
    pub(crate) fn replaced(&self, members: &[Host]) -> Self {
        let hosts = members.to_vec();
        let context = MachineContext {
            hosts,
            cluster: Cluster::New,
            ..self.context.clone()
        };
        Self::new(self.host, context)
    }

    /// Starts the process, unless it runs.
    pub(crate) fn start(&mut self) {
        if self.process.is_some() {
            return;
        }
        self.disk.repair();
        let runtime = simulated_runtime();
        let replica = Arc::new(OnceLock::new());
        runtime.spawn(boot(Boot {
            config: self.config(),
            environment: self.environment(),
            context: self.context.clone(),
            replica: Arc::clone(&replica),
        }));
        (self.stopped_until_ms, self.stopped_ms) = (0, 0);
        self.process = Some(Process { runtime, replica });
    }

    /// Kills the process. What it has written is there for the next one.
    pub(crate) fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            self.context.network.detach(self.host);
            drop(process);
        }
    }

    /// Pauses the process until a time, in milliseconds: its clocks continue meanwhile.
    pub(crate) fn stop_until(&mut self, until_ms: u64) {
        self.stopped_until_ms = until_ms;
    }

    /// Resumes the process.
    pub(crate) fn resume(&mut self) {
        self.stopped_until_ms = 0;
    }

    /// Whether it has a process.
    pub(crate) fn has_process(&self) -> bool {
        self.process.is_some()
    }

    /// Whether it has a process that is not paused.
    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some() && self.context.time.now_ms() >= self.stopped_until_ms
    }

    /// Lets a millisecond pass.
    pub(crate) fn step(&mut self) {
        let is_stopped = self.context.time.now_ms() < self.stopped_until_ms;
        let Some(process) = &self.process else {
            return;
        };
        if is_stopped {
            self.stopped_ms += 1;
            return;
        }
        let missed = Duration::from_millis(std::mem::take(&mut self.stopped_ms));
        process.runtime.block_on(async {
            if !missed.is_zero() {
                tokio::time::advance(missed).await;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        });
    }

    /// The replica, once it has started.
    pub(crate) fn replica(&self) -> Option<&Replica> {
        self.process.as_ref()?.replica.get()?.as_ref().ok()
    }

    /// Why the process stopped, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        match self.process.as_ref()?.replica.get()? {
            Err(error) => Some(format!("did not start: {error}")),
            Ok(replica) => {
                let fatal = replica.fatal();
                let fatal = fatal.borrow();
                fatal.as_ref().map(|fatal| fatal.to_string())
            }
        }
    }

    /// Runs a function on the process's runtime.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(process) = &self.process {
            process.runtime.spawn(task);
        }
    }

    fn config(&self) -> Config {
        let address = |host: &Host| (NodeId(*host), peer_address(*host).to_string());
        let peers = self.context.hosts.iter().map(address).collect();
        Config {
            node_id: NodeId(self.host),
            formation: Formation::Found { peers },
            peer_listen: peer_address(self.host),
            formation_requirements: String::new(),
            peer_names: Vec::new(),
            client_address: format!("node-{}", self.host),
            data_directory: PathBuf::from(format!("node-{}", self.host)),
            version: "simulated".to_owned(),
            engine_version: flotilla_engine::ENGINE_VERSION,
            tuning: self.context.tuning.clone(),
        }
    }

    fn environment(&self) -> (Environment, Arc<Hub>) {
        let hub = Arc::new(Hub::new(in_leader(self.context.bug)));
        let environment = Environment {
            offers: hub.clone(),
            clock: self.clock.clone(),
            transport: Arc::new(SimulatedTransport {
                network: self.context.network.clone(),
                host: self.host,
                forges_senders: self.context.bug == Some(Bug::ForgedSender),
            }),
            storage: Arc::new(self.disk.clone()),
            execution: Execution::CallersRuntime(self.pace.clone()),
            observer: Arc::new(NoObserver),
            inspector: Arc::new(NoInspector),
        };
        (environment, hub)
    }
}

/// The bug that is planted in the leader's parts, if any.
fn in_leader(bug: Option<Bug>) -> Option<PlantedBug> {
    match bug? {
        Bug::InLeader(bug) => Some(bug),
        _ => None,
    }
}

/// A runtime on this thread, whose clock moves only when all of its tasks wait.
pub(crate) fn simulated_runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without threads and files needs nothing from the system")
}

/// What a process starts with.
struct Boot {
    config: Config,
    environment: (Environment, Arc<Hub>),
    context: MachineContext,
    replica: Arc<OnceLock<Result<Replica, String>>>,
}

/// Asks a node to form its cluster, unless it joins one: whatever nodes are empty may form one, so the simulation finds it if
/// they form two.
async fn ask_to_form(replica: Replica) {
    drop(replica.form(Instant::now() + FORMATION_TIMEOUT).await);
}

async fn boot(boot: Boot) {
    let Boot {
        config,
        environment: (environment, hub),
        context,
        replica: slot,
    } = boot;
    let host = config.node_id.0;
    let started = Replica::start(config, environment).await;
    if let Ok(replica) = &started {
        let record = context.record.clone();
        tokio::spawn(ask_to_form(replica.clone()));
        let cluster = context.cluster;
        let subscription = replica.subscribe();
        tokio::spawn(watch_assignments(record.clone(), cluster, subscription));
        flotilla_leader::start(flotilla_leader::Context {
            replica: replica.clone(),
            hub: Arc::clone(&hub),
            schemas: Arc::new(Schemas::new(replica.blocking_pool())),
            initial_access: Some(InitializeAccess {
                mode: AccessMode::Open,
                bootstrap: None,
            }),
            observer: Arc::new(DriverTrace {
                host,
                record: record.clone(),
            }),
            // A process is killed with its runtime, or its replica ends.
            shutdown: CancellationToken::new(),
        });
        let gateway = Arc::new(Gateway {
            replica: replica.clone(),
            hub,
            bug: context.bug,
            member: Member { host, cluster },
            record,
        });
        context.network.serve(host, Arc::clone(&gateway));
        if context.has_workers {
            let worker = MemberWorker::new(gateway, context.network.clone(), context.seed);
            tokio::spawn(worker.run());
        }
    }
    let started = started.map_err(|error| error.to_string());
    assert!(slot.set(started).is_ok(), "a process boots once");
}
