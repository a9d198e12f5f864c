//! A running node.

use crate::config::{ConfigInvalid, ServerConfig};
use crate::context::Context;
use crate::edge::Edge;
use crate::gateway::Gateway;
use crate::limits::{CONNECTION_STREAMS_MAX, MESSAGE_BYTES_MAX, STOP_GRACE};
use crate::services::{Actions, Clusters, Workflows};
use crate::watch::Watchers;
use crate::workers::{Hub, Workers};
use crate::{drivers, embedded, health, watch};
use flotilla_api::FILE_DESCRIPTOR_SET;
use flotilla_api::v1::action_service_server::ActionServiceServer;
use flotilla_api::v1::cluster_service_server::ClusterServiceServer;
use flotilla_api::v1::worker_service_server::WorkerServiceServer;
use flotilla_api::v1::workflow_service_server::WorkflowServiceServer;
use flotilla_engine::NodeId;
use flotilla_replica::{
    Config, FatalError, Formation, Hooks, ReadError, Replica, StartError, Tuning,
};
use futures::future::join_all;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic_health::server::health_reporter;

/// How often a silent connection is asked whether its other end lives, and how long that may take.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// What a client may send on one stream, and on all of a connection's, before it is read. In bytes.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// See [`STREAM_WINDOW_BYTES`].
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// How long one look for a leader takes.
const READY_INTERVAL: Duration = Duration::from_secs(1);

type Serving = JoinHandle<Result<(), tonic::transport::Error>>;

/// A running node. It is a value without global state: one process can host several.
pub struct Server {
    context: Arc<Context>,
    address: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
    serving: Serving,
}

/// Why a node could not start, or not go on. [`ServerError::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigInvalid),
    /// Clients cannot be served there.
    #[error("expected to listen on {address}, but that failed")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The replica refused to start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The replica cannot go on: the process must end and be started again.
    #[error(transparent)]
    Fatal(Arc<FatalError>),
    /// The gRPC server failed.
    #[error("expected to serve clients, but the gRPC server ended")]
    Serve(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The node was stopped before it was ready.
    #[error("expected the node to become ready, but it was stopped")]
    Stopped,
}

impl ServerError {
    /// What to do about it, where there is advice.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => error.hint().map(ToOwned::to_owned),
            Self::Listen { .. } => Some("is another process using the port?".to_owned()),
            Self::Start(error) => Some(error.hint()),
            Self::Fatal(error) => Some(error.hint()),
            Self::Serve(_) | Self::Stopped => None,
        }
    }
}

impl Server {
    /// Starts a node: its replica, its services and what it does by itself. Returns as soon as
    /// clients can connect; [`Server::ready`] waits for a leader.
    ///
    /// # Errors
    /// [`ServerError`] when the configuration is wrong, the port is taken or the data directory
    /// cannot be used.
    pub async fn start(config: ServerConfig) -> Result<Self, ServerError> {
        config.validate()?;
        let (listener, address) = listen(config.listen).await?;
        let client_address = config
            .advertise
            .clone()
            .unwrap_or_else(|| address.to_string());
        tracing::info!(http_listen = %config.http_listen, "HTTP is not served yet");
        let hub = Arc::new(Hub::default());
        let hooks = Hooks {
            offers: hub.clone(),
            ..Hooks::default()
        };
        let replica = Replica::start(replica_config(&config, &client_address), hooks).await?;
        let subscription = replica.subscribe();
        let context = Arc::new(Context {
            gateway: Gateway::new(replica),
            watchers: Watchers::default(),
            node: NodeId(config.node_id),
            client_address,
            shutdown: CancellationToken::new(),
        });
        let (reporter, health_service) = health_reporter();
        let routes = routes(&context, &hub)?.add_service(health_service);
        let tasks = vec![
            watch::start(context.clone(), subscription),
            health::start(context.clone(), reporter),
            drivers::start(context.clone(), hub),
            embedded::start(context.clone()),
        ];
        let serving = serve(&context, listener, routes);
        tracing::info!(node = config.node_id, %address, "clients are served");
        Ok(Self {
            context,
            address,
            tasks,
            serving,
        })
    }

    /// The `host:port` under which clients reach the node.
    #[must_use]
    pub fn client_address(&self) -> &str {
        &self.context.client_address
    }

    /// Where the node listens for clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until a leader serves this node.
    ///
    /// # Errors
    /// [`ServerError::Fatal`] when the replica cannot go on, [`ServerError::Stopped`] when the node
    /// is stopped meanwhile.
    pub async fn ready(&self) -> Result<(), ServerError> {
        let replica = self.context.gateway.replica();
        loop {
            tokio::select! {
                error = fatal(replica) => return Err(error),
                caught_up = replica.read_index(Instant::now() + READY_INTERVAL) => match caught_up {
                    Ok(()) => return Ok(()),
                    Err(ReadError::Shutdown) => return Err(ServerError::Stopped),
                    // A replica that diverged rebuilds itself.
                    Err(_) => tokio::time::sleep(READY_INTERVAL / 10).await,
                },
            }
        }
    }

    /// Serves until `shutdown` is done, then stops: no new connections, streams end, what is in
    /// hand is finished, the replica is closed.
    ///
    /// # Errors
    /// [`ServerError`] when the node could not go on; it is stopped all the same.
    pub async fn run_until(
        mut self,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        let replica = self.context.gateway.replica();
        let result = tokio::select! {
            () = shutdown => Ok(()),
            error = fatal(replica) => Err(error),
            ended = &mut self.serving => Err(serve_error(ended)),
        };
        if let Err(error) = &result {
            tracing::error!(%error, "the node cannot go on");
        }
        self.stop().await;
        result
    }

    async fn stop(mut self) {
        tracing::info!("the node stops");
        self.context.shutdown.cancel();
        let ended = timeout(STOP_GRACE, join_all(self.tasks.drain(..))).await;
        for error in ended
            .unwrap_or_default()
            .into_iter()
            .filter_map(Result::err)
        {
            tracing::error!(%error, "a part of the node had failed");
        }
        // The handle may have been awaited to its end already; a connection that does not end in
        // time is cut.
        if !self.serving.is_finished() && timeout(STOP_GRACE, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
        self.context.gateway.replica().shutdown().await;
        tracing::info!("the node has stopped");
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServerError> {
    let failed = |source| ServerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn replica_config(config: &ServerConfig, client_address: &str) -> Config {
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
        peer_listen: config.peer_listen,
        client_address: client_address.to_owned(),
        data_directory: config.data_dir.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        tuning: Tuning::default(),
    }
}

/// The node's own services and reflection.
fn routes(context: &Arc<Context>, hub: &Arc<Hub>) -> Result<Routes, ServerError> {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(|error| ServerError::Serve(Box::new(error)))?;
    let workflows = WorkflowServiceServer::new(Workflows::new(context.clone()));
    let actions = ActionServiceServer::new(Actions::new(context.clone()));
    let workers = WorkerServiceServer::new(Workers::new(context.clone(), hub.clone()));
    let clusters = ClusterServiceServer::new(Clusters::new(context.clone()));
    let routes = Routes::new(workflows.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(actions.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(workers.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(clusters.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(reflection);
    Ok(routes)
}

fn serve(context: &Context, listener: TcpListener, routes: Routes) -> Serving {
    let shutdown = context.shutdown.clone();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(CONNECTION_STREAMS_MAX)
        .layer(Edge::new(context.gateway.replica().leadership()))
        .add_routes(routes)
        .serve_with_incoming_shutdown(incoming, shutdown.cancelled_owned());
    tokio::spawn(server)
}

/// Waits until the replica cannot go on.
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
