//! Test support that several modules share.

use crate::context::Context;
use crate::drivers::Driver;
use crate::observer::NoObserver;
use crate::poller::read;
use crate::schemas::Schemas;
use flotilla_engine::ids::Namespace;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{AccessMode, Body, InitializeAccess, NodeId, Reply};
use flotilla_replica::{Config, Environment, Formation, Replica, Tuning};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A node on which nothing runs: a test does what the pump and the drivers would do.
pub(crate) struct StillNode {
    pub(crate) replica: Replica,
    _data: TempDir,
}

impl StillNode {
    /// Starts a node that is alone in its cluster, and waits until it leads.
    pub(crate) async fn start() -> Self {
        let node = Self::start_with(BTreeMap::from([(NodeId(1), "127.0.0.1:1".to_owned())])).await;
        node.replica.read_index(deadline()).await.unwrap();
        node
    }

    /// Starts one of three nodes; the others never start, so there is no leader.
    pub(crate) async fn start_without_quorum() -> Self {
        let address = |id: u64| (NodeId(id), format!("127.0.0.1:{id}"));
        Self::start_with([1, 2, 3].map(address).into()).await
    }

    async fn start_with(peers: BTreeMap<NodeId, String>) -> Self {
        let data = tempfile::tempdir().unwrap();
        let config = Config {
            node_id: NodeId(1),
            formation: Formation::Found { peers },
            peer_listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            formation_requirements: String::new(),
            peer_names: Vec::new(),
            client_address: String::new(),
            data_directory: data.path().to_owned(),
            version: String::new(),
            engine_version: flotilla_engine::ENGINE_VERSION,
            tuning: Tuning::default(),
        };
        let replica = Replica::start(config, Environment::default()).await;
        Self {
            replica: replica.unwrap(),
            _data: data,
        }
    }

    /// A driver on this node.
    pub(crate) fn driver(&self) -> Driver {
        Driver::new(Context {
            hub: Arc::default(),
            schemas: Arc::new(Schemas::new(self.replica.blocking_pool())),
            initial_access: Some(InitializeAccess {
                mode: AccessMode::Open,
                bootstrap: None,
            }),
            observer: Arc::new(NoObserver),
            shutdown: CancellationToken::new(),
            replica: self.replica.clone(),
        })
    }

    /// Submits a command of the default namespace.
    pub(crate) async fn submit(&self, body: Body) -> Reply {
        let command = body.into_command(Namespace::default_namespace());
        let submitted = self.replica.submit(command.by_anyone(), deadline()).await;
        submitted.unwrap().unwrap()
    }

    /// Reads what it has applied.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&dyn Reader) -> Result<T, StoreError>) -> T {
        read(&self.replica, look).unwrap()
    }
}

/// The deadline for what a test waits for.
fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(60)
}
