//! The seam between members.

use crate::network::calls::PeerCalls;
use crate::network::client::GrpcPeer;
use crate::network::server;
use futures::future::BoxFuture;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How members reach each other.
pub trait Transport: Send + Sync + 'static {
    /// A peer by its address. Connects when first used and again after failures; each call of this
    /// gives a connection of its own, so that bulk does not hold up heartbeats.
    fn connect(&self, address: &str) -> Arc<dyn PeerCalls>;

    /// Serves `peer` on `listen` until `shutdown`. Returns once peers can connect.
    ///
    /// # Errors
    /// [`io::Error`] when the address cannot be used.
    fn serve(
        &self,
        listen: SocketAddr,
        peer: Arc<dyn PeerCalls>,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, io::Result<()>>;
}

/// gRPC over TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct GrpcTransport;

impl Transport for GrpcTransport {
    fn connect(&self, address: &str) -> Arc<dyn PeerCalls> {
        Arc::new(GrpcPeer::new(address))
    }

    fn serve(
        &self,
        listen: SocketAddr,
        peer: Arc<dyn PeerCalls>,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(server::serve(listen, peer, shutdown))
    }
}
