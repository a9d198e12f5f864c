//! The sockets under the gRPC of a node: plain TCP, or TLS.

use super::acceptor;
use super::admission::Admission;
use crate::tls::{Dialer, Port, Tls, caller_of};
use flotilla_replica::{Arrivals, Caller, Sockets};
use std::future::ready;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::{Channel, Endpoint};

/// The sockets under the gRPC of a node.
pub(crate) struct NodeSockets {
    /// The node's TLS, if it has certificates.
    pub(crate) tls: Option<Arc<Tls>>,
    /// The port at which connections are accepted, and to which port of other nodes they are opened.
    pub(crate) port: Port,
    /// The bounds of the accepted connections.
    pub(crate) admission: Arc<Admission>,
    /// Executes the cryptography of handshakes, so that they do not delay heartbeats.
    pub(crate) handshakes: Handle,
}

impl Sockets for NodeSockets {
    fn channel(&self, endpoint: &Endpoint) -> Channel {
        match &self.tls {
            Some(tls) => endpoint.connect_with_connector_lazy(Dialer::new(tls.clone(), self.port)),
            None => endpoint.connect_lazy(),
        }
    }

    fn accept(&self, listener: TcpListener) -> Arrivals {
        let Some(tls) = self.tls.clone() else {
            let establish = |stream: TcpStream| ready(Some((stream, Caller::default())));
            return acceptor::accept(listener, self.admission.clone(), establish);
        };
        let (port, handshakes) = (self.port, self.handshakes.clone());
        acceptor::accept(listener, self.admission.clone(), move |stream| {
            let tls = tls.clone();
            let handshake = async move { tls.handshake_or_log(port, stream).await };
            let handshake = AbortOnDropHandle::new(handshakes.spawn(handshake));
            async move {
                let stream = handshake.await.ok().flatten()?;
                let caller = caller_of(&stream);
                Some((stream, caller))
            }
        })
    }
}
