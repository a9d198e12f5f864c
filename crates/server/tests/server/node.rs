//! A node under test, and helpers that drive it.

use crate::wait::until;
use flotilla_api::v1;
use flotilla_engine::store::Writes;
use flotilla_replica::{RocksStorage, Sockets, StartError, Storage, StorageError};
use flotilla_server::{AccessMode, Peer, Server, ServerConfig, ServerError};
use futures::future::join_all;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_types::StatusExt;
use v1::action_service_client::ActionServiceClient;
use v1::cluster_service_client::ClusterServiceClient;
use v1::kv_service_client::KvServiceClient;
use v1::namespace_service_client::NamespaceServiceClient;
use v1::stream_service_client::StreamServiceClient;
use v1::worker_service_client::WorkerServiceClient;
use v1::workflow_service_client::WorkflowServiceClient;

/// A run of it waits for a signal and then ends with the signal's payload.
pub(crate) const APPROVAL: &str = r#"
kind: Workflow
name: approval
version: "1.0.0"
start:
  waitForSignal: {type: decision, timeoutMs: 600000}
  transitions: {success: flo.Completed}
"#;

/// A node with its own data directory.
pub(crate) struct Node {
    pub(crate) address: String,
    pub(crate) http_address: String,
    /// Its peer port, if it is one of several nodes.
    pub(crate) peer_address: Option<String>,
    channel: Channel,
    serving: JoinHandle<Result<(), ServerError>>,
    // Also stops the node when a test fails.
    stop: DropGuard,
    data: tempfile::TempDir,
}

impl Node {
    /// Starts a node that is alone in its cluster, and waits until it leads.
    pub(crate) async fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        Self::serve(ready(config(data.path())).await, data)
    }

    /// Starts a node that is alone in its cluster, with another configuration.
    pub(crate) async fn start_with(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut config = config(data.path());
        change(&mut config);
        Self::serve(ready(config).await, data)
    }

    /// Starts the three nodes of a cluster, and waits until all of them know the leader.
    pub(crate) async fn start_cluster() -> Vec<Self> {
        Self::start_cluster_over(|_, sockets| sockets).await
    }

    /// As [`Node::start_cluster`], with other configurations.
    pub(crate) async fn start_cluster_with(change: impl Fn(&mut ServerConfig)) -> Vec<Self> {
        Self::start_members(change, |_, sockets| sockets).await
    }

    /// As [`Node::start_cluster`]; `wrap` wraps the sockets of each node, by its id, to the other members.
    pub(crate) async fn start_cluster_over(
        wrap: impl Fn(u64, Arc<dyn Sockets>) -> Arc<dyn Sockets>,
    ) -> Vec<Self> {
        Self::start_members(|_| {}, wrap).await
    }

    async fn start_members(
        change: impl Fn(&mut ServerConfig),
        wrap: impl Fn(u64, Arc<dyn Sockets>) -> Arc<dyn Sockets>,
    ) -> Vec<Self> {
        let (peers, change, wrap) = (&peers(), &change, &wrap);
        let start = async |node_id| {
            let data = tempfile::tempdir().unwrap();
            let mut config = member(node_id, peers, data.path());
            change(&mut config);
            let peer_address = config.peer_listen.to_string();
            let server = Server::start_over(config, |sockets| wrap(node_id, sockets));
            let server = server.await.unwrap();
            // Each of them may be asked, and all at the same time.
            server.form().await.unwrap();
            server.ready().await.unwrap();
            Self {
                peer_address: Some(peer_address),
                ..Self::serve(server, data)
            }
        };
        join_all([1, 2, 3].map(start)).await
    }

    /// Starts one of three nodes; the others never start.
    pub(crate) async fn start_without_quorum() -> Self {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(member(1, &peers(), data.path()))
            .await
            .unwrap();
        Self::serve(server, data)
    }

    fn serve(server: Server, data: tempfile::TempDir) -> Self {
        let address = server.client_address().to_owned();
        let http_address = server.http_address().to_owned();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(server.run_until(shutdown.clone().cancelled_owned()));
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = endpoint.connect_lazy();
        Self {
            address,
            http_address,
            peer_address: None,
            channel,
            serving,
            stop: shutdown.drop_guard(),
            data,
        }
    }

    /// Stops the node and returns how it ended.
    pub(crate) async fn stop(self) -> (Result<(), ServerError>, tempfile::TempDir) {
        drop(self.stop);
        (self.serving.await.unwrap(), self.data)
    }

    /// Stops the node, which is alone in its cluster, and starts it again on its data.
    pub(crate) async fn restart(self) -> Self {
        let (result, data) = self.stop().await;
        result.unwrap();
        // The stores are closed by threads that end on their own; no event announces that.
        let server = until("the stores to be closed", async || {
            match Server::start(config(data.path())).await {
                Err(ServerError::Start(error)) if is_in_use(&error) => None,
                started => Some(started.unwrap()),
            }
        })
        .await;
        server.ready().await.unwrap();
        Self::serve(server, data)
    }

    /// Stops the node, which is alone in its cluster, and marks its state as diverged: its next
    /// start then waits for a member with another state.
    pub(crate) async fn condemn(self) -> (ServerConfig, tempfile::TempDir) {
        let (result, data) = self.stop().await;
        result.unwrap();
        let config = ServerConfig {
            http_listen: free_address(),
            ..config(data.path())
        };
        let state = until("the stores to be closed", async || {
            RocksStorage.open_state(&config.data_dir).ok()
        })
        .await;
        let divergence = (vec![0xF2, 2], Some(vec![1, 0, 1, 1, 2]));
        state.write(&Writes::from([divergence])).unwrap();
        state.flush().unwrap();
        (config, data)
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(crate) fn workflows(&self) -> WorkflowServiceClient<Channel> {
        WorkflowServiceClient::new(self.channel())
    }

    pub(crate) fn actions(&self) -> ActionServiceClient<Channel> {
        ActionServiceClient::new(self.channel())
    }

    pub(crate) fn workers(&self) -> WorkerServiceClient<Channel> {
        WorkerServiceClient::new(self.channel())
    }

    pub(crate) fn cluster(&self) -> ClusterServiceClient<Channel> {
        ClusterServiceClient::new(self.channel())
    }

    pub(crate) fn keys(&self) -> KvServiceClient<Channel> {
        KvServiceClient::new(self.channel())
    }

    pub(crate) fn namespaces(&self) -> NamespaceServiceClient<Channel> {
        NamespaceServiceClient::new(self.channel())
    }

    pub(crate) fn streams(&self) -> StreamServiceClient<Channel> {
        StreamServiceClient::new(self.channel())
    }

    /// Stores a definition.
    pub(crate) async fn create(&self, source: &str) -> v1::CreateWorkflowResponse {
        self.try_create(source).await.unwrap()
    }

    pub(crate) async fn try_create(
        &self,
        source: &str,
    ) -> Result<v1::CreateWorkflowResponse, Status> {
        let request = v1::CreateWorkflowRequest {
            source: source.to_owned(),
            ..Default::default()
        };
        Ok(self
            .workflows()
            .create_workflow(request)
            .await?
            .into_inner())
    }

    /// Starts a run.
    pub(crate) async fn run(&self, request: v1::StartRunRequest) -> v1::StartRunResponse {
        self.try_run(request).await.unwrap()
    }

    pub(crate) async fn try_run(
        &self,
        request: v1::StartRunRequest,
    ) -> Result<v1::StartRunResponse, Status> {
        Ok(self.workflows().start_run(request).await?.into_inner())
    }

    pub(crate) async fn status(&self, run_id: &str) -> v1::Run {
        let request = v1::GetRunRequest {
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        self.workflows()
            .get_run(request)
            .await
            .unwrap()
            .into_inner()
    }

    pub(crate) async fn signal(
        &self,
        run_id: &str,
        payload: &str,
    ) -> Result<v1::SignalRunResponse, Status> {
        let request = v1::SignalRunRequest {
            run_id: run_id.to_owned(),
            r#type: "decision".to_owned(),
            payload: payload.to_owned().into(),
            signal_id: format!("signal-{payload}"),
            ..Default::default()
        };
        Ok(self.workflows().signal_run(request).await?.into_inner())
    }
}

/// A request to start a run.
pub(crate) fn start_of(workflow: &str, input: &str) -> v1::StartRunRequest {
    v1::StartRunRequest {
        workflow: workflow.to_owned(),
        input: input.to_owned().into(),
        ..Default::default()
    }
}

/// The code and reason of a refusal.
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Status>) -> (Code, String) {
    let status = result.unwrap_err();
    let info = status
        .get_details_error_info()
        .expect("every refusal has a reason");
    assert_eq!(info.domain, "flotilla");
    (status.code(), info.reason)
}

fn is_in_use(error: &StartError) -> bool {
    matches!(
        error,
        StartError::InUse(_)
            | StartError::Storage {
                error: StorageError::InUse,
                ..
            }
    )
}

async fn ready(config: ServerConfig) -> Server {
    let server = Server::start(config).await.unwrap();
    server.ready().await.unwrap();
    server
}

/// The configuration of a single node.
fn config(data: &Path) -> ServerConfig {
    let listen = "127.0.0.1:0".parse().unwrap();
    ServerConfig {
        listen,
        http_listen: listen,
        peer_listen: free_address(),
        data_dir: data.join("node"),
        access: AccessMode::Open,
        ..Default::default()
    }
}

/// The configuration of one of several nodes.
fn member(node_id: u64, peers: &[Peer], data: &Path) -> ServerConfig {
    let own = peers.iter().find(|peer| peer.node_id == node_id).unwrap();
    let peer_listen = own.address.parse().unwrap();
    ServerConfig {
        node_id,
        peer_listen,
        peers: peers.to_vec(),
        ..config(data)
    }
}

fn peers() -> Vec<Peer> {
    let peer = |node_id| Peer {
        node_id,
        address: free_address().to_string(),
    };
    [1, 2, 3].map(peer).to_vec()
}

/// Members name each other's ports before any of them listens. So the ports are drawn from below
/// the range from which the system assigns ports in between.
pub(crate) fn free_address() -> SocketAddr {
    const FIRST: u16 = 10_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Concurrent test processes begin at different ports.
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap();
    loop {
        let drawn = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + start.wrapping_add(drawn) % COUNT;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener.local_addr().unwrap();
        }
    }
}
