//! What all parts of a node share.

use crate::gateway::Gateway;
use crate::metrics::Metrics;
use crate::schemas::Schemas;
use crate::tls::Tls;
use crate::traces::Tracer;
use crate::watch::Watchers;
use flotilla_engine::NodeId;
use flotilla_replica::Sockets;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What all parts of a node share.
pub(crate) struct Context {
    /// The way to the cluster's state.
    pub(crate) gateway: Gateway,
    /// Who waits for something to be applied.
    pub(crate) watchers: Watchers,
    /// The input schemas that were asked last.
    pub(crate) schemas: Schemas,
    /// What it has counted.
    pub(crate) metrics: Arc<Metrics>,
    /// This node.
    pub(crate) node: NodeId,
    /// The `host:port` under which clients reach it.
    pub(crate) client_address: String,
    /// The `host:port` under which its HTTP is reached.
    pub(crate) http_address: String,
    /// Where its data is.
    pub(crate) data_directory: PathBuf,
    /// How it connects to other nodes.
    pub(crate) sockets: Arc<dyn Sockets>,
    /// Its certificates, if it has any.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Where its spans go, if it sends any.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// Cancelled when the node stops: everything that waits ends then.
    pub(crate) shutdown: CancellationToken,
}
