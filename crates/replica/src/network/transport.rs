//! The transport between members.

use crate::network::calls::PeerCalls;
use crate::network::client::GrpcPeer;
use crate::network::host_services::{HostServices, HostServicesHandle};
use crate::network::server;
use crate::network::sockets::{PlainSockets, Sockets};
use futures::future::BoxFuture;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How members reach each other.
pub trait Transport: Send + Sync + 'static {
    /// A peer by its address. Connects on first use and again after failures; each call returns a
    /// separate connection, so that bulk data does not delay heartbeats.
    fn connect(&self, address: &str) -> Arc<dyn PeerCalls>;

    /// Serves `peer` on `listen` until `shutdown`. Returns once peers can connect.
    ///
    /// # Errors
    /// [`io::Error`] if the address cannot be used.
    fn serve(
        &self,
        listen: SocketAddr,
        peer: Arc<dyn PeerCalls>,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, io::Result<()>>;
}

/// gRPC, over TCP or the host's own sockets.
#[derive(Clone)]
pub struct GrpcTransport {
    sockets: Arc<dyn Sockets>,
    host_services: HostServicesHandle,
}

impl GrpcTransport {
    /// gRPC over these sockets.
    #[must_use]
    pub fn over(sockets: Arc<dyn Sockets>) -> Self {
        Self {
            sockets,
            host_services: HostServicesHandle::default(),
        }
    }

    /// Also serves these at the peer port.
    #[must_use]
    pub fn with_host_services(self, host_services: &HostServices) -> Self {
        Self {
            host_services: host_services.handle(),
            ..self
        }
    }
}

impl Default for GrpcTransport {
    fn default() -> Self {
        Self::over(Arc::new(PlainSockets))
    }
}

impl Transport for GrpcTransport {
    fn connect(&self, address: &str) -> Arc<dyn PeerCalls> {
        Arc::new(GrpcPeer::new(address, self.sockets.as_ref()))
    }

    fn serve(
        &self,
        listen: SocketAddr,
        peer: Arc<dyn PeerCalls>,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, io::Result<()>> {
        let Self {
            sockets,
            host_services,
        } = self.clone();
        Box::pin(async move {
            let listener = TcpListener::bind(listen).await?;
            let routes = server::routes(peer, host_services);
            server::serve(sockets.accept(listener), routes, shutdown);
            Ok(())
        })
    }
}
