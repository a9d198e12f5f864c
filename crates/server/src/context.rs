//! The context that all parts of a node share.

use crate::access::CallerChecks;
use crate::gateway::Gateway;
use crate::keyring::NodeKeyring;
use crate::members::LeaderClients;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::modules::Modules;
use crate::oidc::Issuers;
use crate::tls::Tls;
use crate::traces::Tracer;
use crate::watch::Watchers;
use flotilla_engine::NodeId;
use flotilla_leader::Schemas;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The context that all parts of a node share.
pub(crate) struct Context {
    /// Submits commands and reads the state on behalf of the node itself. Calls have their own.
    pub(crate) node_gateway: Gateway,
    /// What the node checks and records about its callers.
    pub(crate) caller_checks: CallerChecks,
    /// The secret keys that all nodes share.
    pub(crate) keyring: Arc<NodeKeyring>,
    /// The issuers of tokens that prove who calls.
    pub(crate) issuers: Arc<Issuers>,
    /// Callers that wait until something is applied.
    pub(crate) watchers: Watchers,
    /// Compiled input schemas, most recently used.
    pub(crate) schemas: Arc<Schemas>,
    /// The node's memory.
    pub(crate) memory: Memory,
    /// The modules of WASM actions that this node has tried and compiled.
    pub(crate) modules: Arc<Modules>,
    /// The node's counters.
    pub(crate) metrics: Arc<Metrics>,
    /// This node's id.
    pub(crate) node: NodeId,
    /// The `host:port` of this node's gRPC, for clients.
    pub(crate) client_address: String,
    /// The `host:port` of this node's HTTP.
    pub(crate) http_address: String,
    /// The data directory.
    pub(crate) data_directory: PathBuf,
    /// Calls the leader, for workers.
    pub(crate) leaders: LeaderClients,
    /// The node's certificates, if TLS is on.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Exports spans, if tracing is on.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// Cancelled when the node stops; ends everything that waits.
    pub(crate) shutdown: CancellationToken,
}
