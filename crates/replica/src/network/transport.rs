//! The transport between members.

use crate::network::calls::PeerCalls;
use crate::network::client::GrpcPeer;
use crate::network::host_services::{HostServices, HostServicesHandle};
use crate::network::member_guard::MemberGuard;
use crate::network::member_secret::{MemberSecret, MemberSecretInterceptor, MemberState};
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

    /// Follows the state of the replica, for a transport whose decisions depend on it. Called once, before [`Self::serve`].
    fn follow(&self, _state: MemberState) {}

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
    member_secret: Option<Arc<dyn MemberSecret>>,
}

impl GrpcTransport {
    /// gRPC over these sockets.
    #[must_use]
    pub fn over(sockets: Arc<dyn Sockets>) -> Self {
        Self {
            sockets,
            host_services: HostServicesHandle::default(),
            member_secret: None,
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

    /// Adds the secret of the members to calls, and checks that of callers: for members without certificates.
    #[must_use]
    pub fn with_member_secret(self, secret: Option<Arc<dyn MemberSecret>>) -> Self {
        Self {
            member_secret: secret,
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
        let secret = MemberSecretInterceptor::new(self.member_secret.clone());
        Arc::new(GrpcPeer::new(address, self.sockets.as_ref(), secret))
    }

    fn follow(&self, state: MemberState) {
        if let Some(secret) = self.member_secret.clone() {
            secret.follow(state);
        }
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
            member_secret,
        } = self.clone();
        Box::pin(async move {
            let listener = TcpListener::bind(listen).await?;
            let routes = server::routes(peer, host_services);
            let guard = MemberGuard::new(member_secret);
            server::serve(sockets.accept(listener), (guard, routes), shutdown);
            Ok(())
        })
    }
}
