//! Starts a replica from its configuration.

use crate::clock::StampClock;
use crate::cluster::disk_watch::DiskWatch;
use crate::cluster::formation::{Formation, Round};
use crate::cluster::member_disk::DataDisk;
use crate::cluster::probe;
use crate::cluster::rebuild::Rebuild;
use crate::core::{Core, CoreParts};
use crate::environment::Environment;
use crate::execution::{BlockingPool, Execution};
use crate::fatal::FatalError;
use crate::identity::{self, IdentityError};
use crate::log::device::DeviceError;
use crate::log::store::{LogOpenError, LogParts, LogStore};
use crate::membership::cluster_id;
use crate::network::caller::host_of;
use crate::network::connection::Connections;
use crate::network::handler::Handler;
use crate::network::links::Links;
use crate::network::local::{Local, LocalName};
use crate::network::member_secret::MemberState;
use crate::raft;
use crate::read::Waiters;
use crate::replica::Config;
use crate::running::{OwnRuntime, Running};
use crate::stagger::Share;
use crate::start_error::StartError;
use crate::state::applier::{AppliedState, Applier};
use crate::state::machine::Machine;
use crate::state::rows::{self, Identity};
use crate::state::store::StateStore;
use crate::storage::{DirectoryLock, Storage, StorageError};
use crate::tasks::{self, run};
use openraft::StorageHelper;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Starts a replica where its environment says.
pub(crate) async fn start(config: Config, environment: Environment) -> Result<Running, StartError> {
    let blocking_pool = BlockingPool::from(environment.execution.clone());
    match environment.execution {
        Execution::OwnThreads => start_apart(config, environment, blocking_pool).await,
        Execution::CallersRuntime(_) => {
            let core = open(config, environment, blocking_pool).await?;
            Ok(Running::new(core, None))
        }
    }
}

/// Starts a replica on its own runtime, so that load elsewhere cannot starve its heartbeats. If the
/// future is dropped, everything that was opened is closed.
async fn start_apart(
    config: Config,
    environment: Environment,
    blocking_pool: BlockingPool,
) -> Result<Running, StartError> {
    let name = format!("raft-{}", config.node_id.0);
    let runtime = OwnRuntime::start(name, blocking_pool.clone()).map_err(StartError::Thread)?;
    let opened = runtime
        .handle()
        .spawn(open(config, environment, blocking_pool))
        .await;
    let opened = opened
        .map_err(|error| StartError::Consensus(error.to_string()))
        .flatten();
    match opened {
        Ok(core) => Ok(Running::new(core, Some(runtime))),
        Err(error) => {
            let closing = tokio::task::spawn_blocking(move || drop(runtime));
            if closing.await.is_err() {
                tracing::error!("a refused start could not be cleaned up");
            }
            Err(error)
        }
    }
}

async fn open(
    config: Config,
    environment: Environment,
    blocking_pool: BlockingPool,
) -> Result<Arc<Core>, StartError> {
    if let Formation::Found { peers } = &config.formation
        && !peers.contains_key(&config.node_id)
    {
        return Err(StartError::NotListed(config.node_id));
    }
    let (core, waiters) = assemble(&config, &environment, &blocking_pool).await?;
    // Before a peer could send more than there is space for.
    core.disk.measure();
    let handler = Arc::new(Handler {
        core: Arc::clone(&core),
    });
    let subscription = core.applied_state.feed.subscribe();
    let state = MemberState::new(subscription, &core.store);
    environment.transport.follow(state);
    environment
        .transport
        .serve(config.peer_listen, handler, core.lifecycle.token())
        .await
        .map_err(|error| StartError::Listen {
            address: config.peer_listen,
            error,
        })?;
    tasks::spawn_all(&core, &environment, waiters);
    let disk_watch = DiskWatch {
        disk: Arc::clone(&core.disk),
        local: Arc::clone(&core.local),
        consensus: core.consensus.clone(),
        leadership: core.leadership.subscribe(),
        transfers: core.transfers.clone(),
        interval: core.tuning.upkeep_interval,
    };
    run(&core, disk_watch.run());
    let is_settled = core.formation.round().await? == Round::Settled;
    if !is_settled || !core.consensus.is_member() {
        let waiting = Arc::clone(&core);
        run(&core, async move {
            if let Err(error) = waiting.formation.run().await {
                waiting.lifecycle.fail(FatalError::Refused(error));
            }
        });
    }
    Ok(core)
}

/// An opened data directory.
struct OpenDirectory {
    lock: DirectoryLock,
    identity: Identity,
    log: LogStore,
    store: Arc<dyn StateStore>,
    machine: Machine,
    applied_state: AppliedState,
    clock: Arc<StampClock>,
}

fn open_directory(
    config: &Config,
    environment: &Environment,
    blocking_pool: &BlockingPool,
) -> Result<OpenDirectory, StartError> {
    let directory = &config.data_directory;
    let node_id = config.node_id.0;
    let lock = lock(environment.storage.as_ref(), directory)?;
    let device = environment.storage.open_log(directory);
    let device = device.map_err(storage_error("log", directory))?;
    let store = environment.storage.open_state(directory);
    let store = store.map_err(storage_error("state", directory))?;
    let limited = store.limit_buffers(Share::of(node_id).percent());
    limited
        .map_err(|error| StorageError::Failed(error.0))
        .map_err(storage_error("state", directory))?;
    let identity = identity::establish(config, device.as_ref(), store.as_ref())?;
    let clock = Arc::new(StampClock::new(Arc::clone(&environment.clock), node_id));
    let applied_state = AppliedState::new();
    let log_parts = LogParts {
        node_id,
        device,
        observer: Arc::clone(&environment.observer),
        state_durable: applied_state.state_durable.subscribe(),
    };
    let log = LogStore::open(log_parts, blocking_pool);
    let log = log.map_err(|error| {
        let directory = directory.clone();
        StartError::Log { directory, error }
    })?;
    if let Some(acknowledged) = log.lost() {
        return Err(StartError::tail_lost(acknowledged, log.last()));
    }
    identity::check_together(log.purged(), store.reader().as_ref())
        .map_err(|error| error.into_start_error(directory))?;
    identity::check_engine_version(config.engine_version, store.as_ref())?;
    let applier = Applier {
        node_id,
        digest_interval: config.tuning.digest_interval.max(1),
        engine_version: config.engine_version,
        store: Arc::clone(&store),
        clock: Arc::clone(&clock),
        applied_state: applied_state.clone(),
        observer: Arc::clone(&environment.observer),
    };
    let machine = Machine::start(applier, blocking_pool);
    let machine = machine.map_err(|error| StartError::Consensus(error.to_string()))?;
    Ok(OpenDirectory {
        lock,
        identity,
        log,
        store,
        machine,
        applied_state,
        clock,
    })
}

/// Repairs what a crash during the installation of a snapshot has left: a log that does not
/// continue the state, and a snapshot that does not reach the log. Refuses a log that ends before the last entry of which it
/// knows that it was committed: it had that entry.
async fn fit_log(opened: &OpenDirectory, directory: &Path) -> Result<(), StartError> {
    let applied_position = rows::applied_position(opened.store.reader().as_ref());
    let applied_position =
        applied_position.map_err(|error| IdentityError::from(error).into_start_error(directory))?;
    if let Some(applied) = applied_position.log_id {
        let fitted = opened.log.fit(applied).await;
        fitted.map_err(|error| StartError::Log {
            directory: directory.to_owned(),
            error: LogOpenError::Device(DeviceError(Box::new(error))),
        })?;
    }
    if let Some(committed) = opened.log.committed()
        && Some(committed) > opened.log.last()
    {
        return Err(StartError::tail_lost(committed, opened.log.last()));
    }
    identity::cover_purged(opened.log.purged(), opened.store.as_ref())
        .map_err(|error| error.into_start_error(directory))
}

/// This member's name for its peers.
fn local_name(config: &Config, identity: &Identity) -> LocalName {
    LocalName {
        node_id: config.node_id.0,
        incarnation: identity.incarnation,
        client_address: config.client_address.clone(),
        version: config.version.clone(),
        engine_version: config.engine_version,
        election_ms: config.tuning.election_ms(),
        formation_requirements: config.formation_requirements.clone(),
        hosts: hosts(config),
    }
}

/// The hosts of members that the configuration names.
fn hosts(config: &Config) -> BTreeSet<String> {
    let addresses: Vec<&String> = match &config.formation {
        Formation::Found { peers } => peers.values().collect(),
        Formation::Join { seeds } => seeds.iter().collect(),
    };
    let hosts = addresses.into_iter().map(|address| host_of(address));
    let names = config.peer_names.iter().map(String::as_str);
    hosts.chain(names).map(str::to_owned).collect()
}

/// Opens the directory and starts consensus; peers are not served yet.
async fn assemble(
    config: &Config,
    environment: &Environment,
    blocking_pool: &BlockingPool,
) -> Result<(Arc<Core>, Waiters), StartError> {
    let tuning = raft::config::config(&config.tuning)
        .map_err(|error| StartError::Tuning(error.to_string()))?;
    let mut opened = open_directory(config, environment, blocking_pool)?;
    fit_log(&opened, &config.data_directory).await?;
    let name = local_name(config, &opened.identity);
    let local = Arc::new(Local::new(name, opened.clock));
    let mut stored = StorageHelper::new(&mut opened.log, &mut opened.machine);
    let membership = stored.get_membership().await;
    let membership = membership.map_err(|error| StartError::Consensus(error.to_string()))?;
    if let Some(cluster_id) = cluster_id(membership.effective().membership()) {
        local.enter(cluster_id);
    }
    let links = Arc::new(Links::new(
        Arc::clone(&local),
        Arc::clone(&environment.transport),
        blocking_pool.clone(),
    ));
    let connections = Connections {
        local: Arc::clone(&local),
        links: Arc::clone(&links),
    };
    probe::check_alone(&local, &links, membership.effective()).await?;
    let log = opened.log.clone();
    let node_id = config.node_id.0;
    let rebuild = Rebuild {
        local: &local,
        links: &links,
        members: membership.effective(),
        store: &opened.store,
        machine: &mut opened.machine,
        log: &opened.log,
        timeout: config.tuning.install_snapshot_timeout,
    };
    rebuild.run_if_diverged().await?;
    let raft = openraft::Raft::new(node_id, Arc::new(tuning), connections, log, opened.machine)
        .await
        .map_err(|error| StartError::Consensus(error.to_string()))?;
    let storage = Arc::clone(&environment.storage);
    let directory = config.data_directory.clone();
    let data_disk = DataDisk { storage, directory };
    Ok(Core::new(CoreParts {
        data_disk,
        local,
        links,
        tuning: config.tuning.clone(),
        raft,
        log: opened.log,
        store: opened.store,
        applied_state: opened.applied_state,
        formation: config.formation.clone(),
        inspector: Arc::clone(&environment.inspector),
        lock: opened.lock,
    }))
}

/// Locks the data directory for this replica.
fn lock(storage: &dyn Storage, directory: &Path) -> Result<DirectoryLock, StartError> {
    storage.lock(directory).map_err(|error| {
        let directory = directory.to_owned();
        match error.kind() {
            ErrorKind::WouldBlock => StartError::InUse(directory),
            _ => StartError::Directory { directory, error },
        }
    })
}

fn storage_error(part: &'static str, directory: &Path) -> impl FnOnce(StorageError) -> StartError {
    let directory = directory.to_owned();
    move |error| StartError::Storage {
        part,
        directory,
        error,
    }
}
