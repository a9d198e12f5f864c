//! Test support that several modules share.

use crate::access::{CallContext, CallerChecks, InitialAccess, Needs};
use crate::config::ServerConfig;
use crate::context::Context;
use crate::gateway::Gateway;
use crate::keyring::NodeKeyring;
use crate::members::LeaderClients;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::modules::{GuestThreads, Modules};
use crate::oidc::Issuers;
use crate::receiving::RequestMemory;
use crate::sending::Responses;
use crate::slow_commands::SlowCommands;
use crate::watch::Watchers;
use flotilla_engine::ids::Namespace;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{
    AccessMode, BindingSubject, Body, BoundActor, Command, InitializeAccess, NodeId, Reply,
};
use flotilla_leader::Schemas;
use flotilla_replica::{
    Caller, CallerCertificate, Config, Environment, Formation, HostServices,
    MemberSecretInterceptor, PlainSockets, Replica, Tuning,
};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Request;

/// A node without running drivers and without listeners: a test does what the drivers would do.
pub(crate) struct StillNode {
    pub(crate) context: Arc<Context>,
    /// The context of a call without a credential.
    pub(crate) call: CallContext,
    _data: TempDir,
}

/// The command that opens the cluster.
const OPEN: InitializeAccess = InitializeAccess {
    mode: AccessMode::Open,
    bootstrap: None,
};

impl StillNode {
    /// Starts a node that is alone in its cluster, and waits until it leads.
    pub(crate) async fn start() -> Self {
        let peers = BTreeMap::from([(NodeId(1), "127.0.0.1:1".to_owned())]);
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
        let replica = Replica::start(config, Environment::default())
            .await
            .unwrap();
        let memory = Memory::of_node(&ServerConfig::default());
        let context = Arc::new(Context {
            caller_checks: CallerChecks::new(&ServerConfig::default()),
            keyring: Arc::new(NodeKeyring::load(None).unwrap()),
            issuers: Arc::new(Issuers::load(&[]).await.unwrap()),
            watchers: Watchers::default(),
            schemas: Arc::new(Schemas::new(replica.blocking_pool())),
            node_gateway: Gateway::new(
                replica,
                InitialAccess::new(AccessMode::Open, None),
                SlowCommands::new(Duration::ZERO),
                &memory.reads,
            ),
            modules: Arc::new(Modules::new(
                GuestThreads::new(1),
                None,
                memory.modules.clone(),
                CancellationToken::new(),
            )),
            node: NodeId(1),
            client_address: String::new(),
            http_address: String::new(),
            data_directory: data.path().to_owned(),
            leaders: LeaderClients::new(
                NodeId(1),
                HostServices::default().handle(),
                Arc::new(PlainSockets),
                MemberSecretInterceptor::default(),
            ),
            tls: None,
            tracer: None,
            memory,
            metrics: Arc::new(Metrics::new()),
            shutdown: CancellationToken::new(),
        });
        context
            .node_gateway
            .home()
            .catch_up(deadline())
            .await
            .unwrap();
        let opened = context
            .node_gateway
            .submit(Command::of_cluster(OPEN), deadline());
        opened.await.unwrap();
        Self {
            call: CallContext::of_anyone(&context),
            context,
            _data: data,
        }
    }

    /// Submits a command of the default namespace.
    pub(crate) async fn submit(&self, body: Body) -> Reply {
        let command = body.into_command(Namespace::default_namespace());
        let envelope = command.by_anyone();
        let node = &self.context.node_gateway;
        let gateway = node.on_behalf_of(envelope.actor, Needs::Credential);
        let submitted = gateway.submit(envelope.command, deadline()).await;
        submitted.unwrap()
    }

    /// A request as the middleware passes it to a service.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let memory = &self.context.memory;
        let responses = Responses::new(memory.responses.clone(), memory.views.clone());
        let mut request = Request::new(message);
        let of_request = RequestMemory::reserve(&memory.requests).expect("it is free");
        let memory = responses.memory_for(Caller::default(), of_request);
        request.extensions_mut().insert(memory);
        request
    }

    /// Reads what it has applied.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&dyn Reader) -> Result<T, StoreError>) -> T {
        self.context.node_gateway.home().read_here(read).unwrap()
    }
}

/// The deadline for what a test asks for.
pub(crate) fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A client certificate.
struct TestCertificate(BoundActor);

impl CallerCertificate for TestCertificate {
    fn is_valid_for(&self, _: &str) -> bool {
        false
    }

    fn bound_actor(&self) -> Option<&BoundActor> {
        Some(&self.0)
    }
}

/// A caller whose client certificate proves the subject and does not expire.
pub(crate) fn certified(subject: &str) -> Caller {
    Caller::with_certificate(Arc::new(TestCertificate(BoundActor {
        subject: BindingSubject::parse(subject).expect("a subject"),
        groups: Vec::new(),
        ends_at_ms: u64::MAX,
    })))
}
