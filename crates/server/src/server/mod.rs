//! The server: starts, runs and stops one node.

mod admin;
mod error;
mod leader;
mod members;
mod transport;

pub use error::ServerError;
pub(crate) use transport::Intake;

use self::transport::{Serving, listen, routes, serve};
use crate::access::{
    CallerChecks, InitialAccessConfig, start_open_warning, start_recovery, start_token_uses,
};
use crate::config::ServerConfig;
use crate::connections::{NodeConnections, NodeSockets};
use crate::context::Context;
use crate::faults::planted;
use crate::gateway::Gateway;
use crate::inspect::NodeInspector;
use crate::keyring::{self, KeyringMemberSecret, NodeKeyring};
use crate::limits::{STOP_GRACE, TRIALS_MAX};
use crate::members::LeaderClients;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::modules::{GuestThreads, Modules, Trial};
use crate::oidc::Issuers;
use crate::slow_commands::SlowCommands;
use crate::tls::{self, Port, Tls, TlsRequirements};
use crate::traces::Tracer;
use crate::watch::Watchers;
use crate::{embedded, faults, health, http, traces, watch};
use flotilla_engine::NodeId;
use flotilla_leader::{Hub, Schemas};
use flotilla_replica::{
    Config, Environment, Formation, GrpcTransport, HostServices, MemberSecret,
    MemberSecretInterceptor, ReadError, Replica, Sockets, Subscription, Tuning,
};
use futures::future::join_all;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic_health::server::health_reporter;

/// How long one wait for a leader takes.
const READY_INTERVAL: Duration = Duration::from_secs(1);

/// How long [`Server::form`] waits.
const FORMATION_TIMEOUT: Duration = Duration::from_hours(1);

/// A running node. It is a value without global state: one process can host several.
pub struct Server {
    context: Arc<Context>,
    address: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
    serving: Serving,
    http: JoinHandle<()>,
    /// The calls over HTTP that are in progress.
    http_calls: TaskTracker,
    admin: Option<JoinHandle<()>>,
    // The services for members end with it.
    _member_services: HostServices,
    // Dropping it ends HTTP and the port of operators.
    probing: DropGuard,
    // Ends the background tasks if the server is dropped without being stopped.
    _stop: DropGuard,
}

impl Server {
    /// Starts a node: its replica, its services and its background tasks. Returns as soon as
    /// clients can connect, over gRPC and HTTP; [`Server::ready`] waits for a leader. A start may
    /// take long if another member's state has to be received first; HTTP probes are answered
    /// meanwhile. Dropping the future cancels the start.
    ///
    /// # Errors
    /// [`ServerError`] if the configuration is invalid, a port is in use or the data directory
    /// cannot be used.
    pub async fn start(config: ServerConfig) -> Result<Self, ServerError> {
        Self::start_over(config, |sockets| sockets).await
    }

    /// As [`Server::start`], over wrapped sockets between the members, so that a test can cut them.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub async fn start_over(
        config: ServerConfig,
        wrap: impl FnOnce(Arc<dyn Sockets>) -> Arc<dyn Sockets>,
    ) -> Result<Self, ServerError> {
        config.validate()?;
        let tls = load_tls(&config)?;
        let issuers = Arc::new(Issuers::load(&config.oidc).await?);
        let ports = Ports::bind(&config).await?;
        let hub = Arc::new(Hub::new(planted::in_leader()));
        let inspector = Arc::new(NodeInspector::new(&hub, wasm_slots(&config)));
        let connections = inspector.connections();
        let metrics = Arc::new(Metrics::new());
        let memory = Memory::of_node(&config);
        let peer_sockets = wrap(sockets(tls.as_ref(), Port::Peers, connections));
        let member_services = HostServices::default();
        let keyring = Arc::new(NodeKeyring::load(keyring::keyring_file(&config)?)?);
        let member_secret = member_secret(tls.as_ref(), &keyring);
        let transport = GrpcTransport::over(peer_sockets.clone())
            .with_host_services(&member_services)
            .with_member_secret(member_secret.clone());
        let environment = environment(transport, &hub, &metrics, &inspector);
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone().drop_guard();
        // Before the replica: its start may take long, and certificates may expire meanwhile.
        let renew = |tls| tls::keep_fresh(shutdown.clone(), tls);
        let renewing = tls.clone().map(renew);
        let access_config = InitialAccessConfig::of(&config);
        let requirements = access_config.requirements(&keyring);
        let replica_config = replica_config(&config, requirements, &memory, &ports.client_address);
        let replica = tokio::select! {
            started = Replica::start(replica_config, environment) => started?,
            never = ports.serve_start(tls.clone()) => match never {},
        };
        let initial_access = access_config.resolve(&config, &replica)?;
        initial_access.check_keyring(&keyring, &replica)?;
        let tracer = Tracer::start(&config, &replica)?;
        let subscriptions = (replica.subscribe(), replica.subscribe());
        let slow_commands = SlowCommands::new(config.slow_command());
        let context = Arc::new(Context {
            caller_checks: CallerChecks::new(&config),
            keyring,
            issuers,
            watchers: Watchers::default(),
            schemas: Arc::new(Schemas::new(replica.blocking_pool())),
            node_gateway: Gateway::new(replica, initial_access, slow_commands, &memory.reads),
            modules: Arc::new(modules(&config, &memory, &shutdown)),
            metrics,
            memory,
            node: NodeId(config.node_id),
            client_address: ports.client_address.clone(),
            http_address: ports.http_address.clone(),
            data_directory: config.data_dir.clone(),
            leaders: LeaderClients::new(
                NodeId(config.node_id),
                member_services.handle(),
                peer_sockets,
                MemberSecretInterceptor::new(member_secret),
            ),
            tls,
            tracer,
            shutdown,
        });
        let started = Started {
            context,
            hub,
            inspector,
            member_services,
            ports,
            subscriptions,
            tasks: renewing.into_iter().collect(),
            stop,
        };
        started.serve()
    }

    /// The `host:port` that clients use to reach the node.
    #[must_use]
    pub fn client_address(&self) -> &str {
        &self.context.client_address
    }

    /// The `host:port` that reaches the node's HTTP.
    #[must_use]
    pub fn http_address(&self) -> &str {
        &self.context.http_address
    }

    /// The address on which the node listens for clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the node can continue, as `/livez` reports: a function that outlives the server.
    pub fn liveness(&self) -> impl Fn() -> bool + Send + use<> {
        let fatal = self.context.node_gateway.home().replica().fatal();
        move || fatal.borrow().is_none()
    }

    /// Forms the cluster of the first members, of which this node must be one, as `flo cluster form` does; returns immediately
    /// if it is formed.
    ///
    /// # Errors
    /// [`ServerError::Form`] if this node is not a first member, or the cluster cannot be formed in an hour.
    pub async fn form(&self) -> Result<(), ServerError> {
        let replica = self.context.node_gateway.home().replica();
        replica.form(Instant::now() + FORMATION_TIMEOUT).await?;
        Ok(())
    }

    /// What this node waits for until a leader serves it, as far as it can learn it within a second.
    pub async fn awaited(&self) -> String {
        let replica = self.context.node_gateway.home().replica();
        match replica.awaited() {
            Some(awaited) => awaited,
            None => replica.status().await.awaited(),
        }
    }

    /// Waits until a leader serves this node.
    ///
    /// # Errors
    /// [`ServerError::Fatal`] if the replica cannot continue, [`ServerError::Stopped`] if the node
    /// is stopped meanwhile.
    pub async fn ready(&self) -> Result<(), ServerError> {
        let replica = self.context.node_gateway.home().replica();
        loop {
            tokio::select! {
                error = fatal(replica) => return Err(error),
                caught_up = replica.read_index(Instant::now() + READY_INTERVAL) => match caught_up {
                    Ok(()) if self.is_access_initialized() => return Ok(()),
                    Err(ReadError::Shutdown) => return Err(ServerError::Stopped),
                    // The first leader has yet to set the access mode, or a diverged replica rebuilds itself.
                    Ok(()) | Err(_) => tokio::time::sleep(READY_INTERVAL / 10).await,
                },
            }
        }
    }

    /// Whether this node has applied the access mode of the cluster, without which it takes no callers.
    fn is_access_initialized(&self) -> bool {
        let gateway = &self.context.node_gateway;
        let is_over = gateway
            .home()
            .read_here(|reader| gateway.initial_access().is_initialized(reader));
        is_over.unwrap_or(false)
    }

    /// Serves until `shutdown` is done, then stops: it accepts no new connections, ends streams,
    /// finishes requests in progress and closes the replica.
    ///
    /// # Errors
    /// [`ServerError`] if the node could not continue; it is stopped in any case.
    pub async fn run_until(
        mut self,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        let replica = self.context.node_gateway.home().replica();
        let result = tokio::select! {
            () = shutdown => Ok(()),
            error = fatal(replica) => Err(error),
            ended = &mut self.serving => Err(serve_error(ended)),
        };
        if let Err(error) = &result {
            if error.is_removal() {
                tracing::info!(%error, "the node stops because the cluster removed it");
            } else {
                tracing::error!(%error, "the node cannot continue");
            }
        }
        self.stop().await;
        result
    }

    async fn stop(mut self) {
        tracing::info!("the node is stopping");
        // First: while this node drains, it would fire no timers and assign no tasks.
        self.context.node_gateway.home().replica().hand_over().await;
        self.context.shutdown.cancel();
        let ended = timeout(STOP_GRACE, join_all(self.tasks.drain(..))).await;
        for error in ended
            .unwrap_or_default()
            .into_iter()
            .filter_map(Result::err)
        {
            tracing::error!(%error, "a part of the node has failed");
        }
        // The handle may already have been awaited; a connection that does not end in time is cut.
        if !self.serving.is_finished() && timeout(STOP_GRACE, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
        self.http_calls.close();
        // A call that does not end in time is cut with its connection.
        let _ = timeout(STOP_GRACE, self.http_calls.wait()).await;
        self.context.node_gateway.home().replica().shutdown().await;
        if let Some(tracer) = self.context.tracer.clone() {
            // Spans that could not be sent are lost; the log says so.
            drop(tokio::task::spawn_blocking(move || tracer.stop()).await);
        }
        drop(self.probing);
        if timeout(STOP_GRACE, self.http).await.is_err() {
            tracing::debug!("connections over HTTP were cut");
        }
        if let Some(mut admin) = self.admin
            && timeout(STOP_GRACE, &mut admin).await.is_err()
        {
            admin.abort();
        }
        tracing::info!("the node has stopped");
    }
}

/// A node whose replica has started, before it serves.
struct Started {
    context: Arc<Context>,
    hub: Arc<Hub>,
    inspector: Arc<NodeInspector>,
    member_services: HostServices,
    ports: Ports,
    /// What is applied from the start on: for watchers, and for the tracer.
    subscriptions: (Subscription, Subscription),
    tasks: Vec<JoinHandle<()>>,
    stop: DropGuard,
}

impl Started {
    /// Starts the background tasks, and serves at all ports.
    fn serve(self) -> Result<Server, ServerError> {
        let Self {
            context,
            hub,
            inspector,
            member_services,
            ports,
            subscriptions,
            mut tasks,
            stop,
        } = self;
        inspector.begin(&context);
        let (reporter, health_service) = health_reporter();
        let routes = routes(&context, &hub)?.add_service(health_service);
        let memory = &context.memory;
        let intake = Intake::new(&context, &memory.requests, &memory.responses);
        member_services.provide(members::routes(&context, &hub, &intake));
        tasks.extend([
            watch::start(context.clone(), subscriptions.0),
            keyring::keep_fresh(context.clone()),
            health::start(context.clone(), reporter),
            leader::start(&context, hub),
            embedded::start(context.clone(), inspector.slots()),
            start_recovery(context.clone()),
            start_token_uses(context.clone()),
            start_open_warning(context.clone()),
        ]);
        let tracer = context.tracer.clone();
        tasks.extend(context.issuers.start(&context.shutdown));
        tasks.extend(tracer.map(|tracer| traces::start(context.clone(), tracer, subscriptions.1)));
        let probing = CancellationToken::new();
        let (connections, tls) = (inspector.connections(), context.tls.as_ref());
        let admission = connections.of(Port::Http);
        let http_calls = TaskTracker::new();
        let served = http::HttpServices {
            context: context.clone(),
            services: routes.clone(),
            intake: intake.clone(),
            calls: http_calls.clone(),
        };
        let http = http::serve(&served, ports.http, admission, probing.clone());
        let admin = ports.admin.map(|listener| {
            let arriving = sockets(tls, Port::Admin, connections).accept(listener);
            admin::serve(&context, arriving, probing.clone())
        });
        let arriving = sockets(tls, Port::Clients, connections).accept(ports.clients);
        let serving = serve(&context, &intake, arriving, routes);
        tracing::info!(node = context.node.0, address = %ports.address, "serving clients");
        Ok(Server {
            context,
            address: ports.address,
            tasks,
            serving,
            http,
            http_calls,
            admin,
            _member_services: member_services,
            probing: probing.drop_guard(),
            _stop: stop,
        })
    }
}

/// The ports of a node, except that for its peers.
struct Ports {
    clients: TcpListener,
    /// Where clients are accepted.
    address: SocketAddr,
    http: TcpListener,
    admin: Option<TcpListener>,
    /// The `host:port` that clients use.
    client_address: String,
    /// The `host:port` that reaches HTTP.
    http_address: String,
}

impl Ports {
    async fn bind(config: &ServerConfig) -> Result<Self, ServerError> {
        let (clients, address) = listen(config.listen).await?;
        let advertise = config.advertise.clone();
        let client_address = advertise.unwrap_or_else(|| address.to_string());
        let (http, http_listen) = listen(config.http_listen).await?;
        let admin = match config.admin_listen {
            Some(address) => Some(listen(address).await?.0),
            None => None,
        };
        Ok(Self {
            clients,
            address,
            http,
            admin,
            http_address: http_address(config, &client_address, http_listen),
            client_address,
        })
    }

    /// Serves probes while the node starts.
    async fn serve_start(&self, tls: Option<Arc<Tls>>) -> Infallible {
        let admin = async {
            match &self.admin {
                Some(listener) => http::serve_start(listener, tls.clone(), Port::Admin).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            never = http::serve_start(&self.http, tls.clone(), Port::Http) => never,
            never = admin => never,
        }
    }
}

/// The environment of the node's replica.
fn environment(
    transport: GrpcTransport,
    hub: &Arc<Hub>,
    metrics: &Arc<Metrics>,
    inspector: &Arc<NodeInspector>,
) -> Environment {
    Environment {
        transport: Arc::new(transport),
        offers: hub.clone(),
        observer: metrics.clone(),
        inspector: inspector.clone(),
        ..faults::faulty_environment()
    }
}

/// The node's modules.
fn modules(config: &ServerConfig, memory: &Memory, shutdown: &CancellationToken) -> Modules {
    let trial = |compiler| Trial::new(compiler, memory.modules.compilation_bytes);
    Modules::new(
        // The memory for compilations allows the others.
        GuestThreads::new(wasm_slots(config) + embedded::Slots::EXTRA + TRIALS_MAX),
        config.module_compiler.clone().map(trial),
        memory.modules.clone(),
        shutdown.clone(),
    )
}

/// The node's certificates, if TLS is configured.
fn load_tls(config: &ServerConfig) -> Result<Option<Arc<Tls>>, ServerError> {
    let Some(files) = config.tls_files() else {
        return Ok(None);
    };
    let requirements = TlsRequirements {
        client_hosts: config.client_hosts(),
        peer_hosts: config.peer_hosts(),
        client_certificates: config.client_certificates,
    };
    Ok(Some(Arc::new(Tls::load(files, requirements)?)))
}

/// How members prove that they are members: without TLS, with a secret from the keyring.
fn member_secret(
    tls: Option<&Arc<Tls>>,
    keyring: &Arc<NodeKeyring>,
) -> Option<Arc<dyn MemberSecret>> {
    match tls {
        Some(_) => None,
        None => Some(Arc::new(KeyringMemberSecret::new(Arc::clone(keyring)))),
    }
}

/// How the node connects to others and accepts connections at a port.
fn sockets(tls: Option<&Arc<Tls>>, port: Port, connections: &NodeConnections) -> Arc<dyn Sockets> {
    Arc::new(NodeSockets {
        tls: tls.cloned(),
        port,
        admission: connections.of(port),
        handshakes: Handle::current(),
    })
}

/// How many calls of WASM actions run at the same time: by default one for each processor, and no more than the quota of
/// the control group allows.
fn wasm_slots(config: &ServerConfig) -> usize {
    match config.wasm_slots {
        Some(slots) => slots as usize,
        None => available_parallelism().map_or(2, NonZeroUsize::get),
    }
}

fn replica_config(
    config: &ServerConfig,
    formation_requirements: String,
    memory: &Memory,
    client_address: &str,
) -> Config {
    let formation = match &config.join {
        Some(seed) => Formation::Join {
            seeds: vec![seed.clone()],
        },
        None => {
            let members = config.members().into_iter();
            Formation::Found {
                peers: members.map(|(id, address)| (NodeId(id), address)).collect(),
            }
        }
    };
    Config {
        node_id: NodeId(config.node_id),
        formation,
        formation_requirements,
        peer_listen: config.peer_listen,
        peer_names: config.peer_names.clone(),
        client_address: client_address.to_owned(),
        data_directory: config.data_dir.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        engine_version: faults::exercise::engine_version(),
        tuning: Tuning {
            snapshot_log_bytes: config.snapshot_log_bytes,
            max_log_bytes: config.max_log_bytes,
            disk_reserve_bytes: config.disk_reserve_bytes,
            waiting_bytes_max: memory.queue_bytes_max,
            ..Tuning::default().with_election(config.election())
        },
    }
}

/// The address of HTTP: the host that clients use, if HTTP listens on the same interface as gRPC or
/// on all; otherwise its own listening address.
fn http_address(config: &ServerConfig, client_address: &str, http_listen: SocketAddr) -> String {
    let ip = http_listen.ip();
    match client_address.rsplit_once(':') {
        Some((host, _)) if ip.is_unspecified() || ip == config.listen.ip() => {
            format!("{host}:{}", http_listen.port())
        }
        Some(_) | None => http_listen.to_string(),
    }
}

/// Waits until the replica cannot continue.
async fn fatal(replica: &Replica) -> ServerError {
    let mut fatal = replica.fatal();
    let error = match fatal.wait_for(Option::is_some).await {
        Ok(error) => error.clone(),
        Err(_) => None,
    };
    match error {
        Some(error) => ServerError::Fatal(error),
        None => std::future::pending().await,
    }
}

fn serve_error(
    ended: Result<Result<(), tonic::transport::Error>, tokio::task::JoinError>,
) -> ServerError {
    match ended {
        Ok(Ok(())) => ServerError::Stopped,
        Ok(Err(error)) => ServerError::Serve(Box::new(error)),
        Err(error) => ServerError::Serve(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_reached_where_clients_are_unless_it_listens_elsewhere() {
        let address = |listen: &str, http_listen: &str, advertised: &str| {
            let config = ServerConfig {
                listen: listen.parse().unwrap(),
                ..ServerConfig::default()
            };
            http_address(&config, advertised, http_listen.parse().unwrap())
        };
        let (everywhere, one) = ("0.0.0.0:9002", "10.0.0.1:9002");
        assert_eq!(address("0.0.0.0:9000", everywhere, "n1:9000"), "n1:9002");
        assert_eq!(address("10.0.0.1:9000", one, "n1:9000"), "n1:9002");
        assert_eq!(
            address("10.0.0.1:9000", everywhere, "[fd00::1]:9000"),
            "[fd00::1]:9002"
        );
        let local = "127.0.0.1:9002";
        assert_eq!(address("10.0.0.1:9000", local, "n1:9000"), local);
    }
}
