//! The sockets under the gRPC of a node: plain TCP, or TLS.

use super::acceptor;
use super::admission::Admission;
use crate::limits::HANDSHAKE_DEADLINE;
use crate::tls::{Dialer, Port, Tls, caller_of};
use flotilla_replica::{Arrivals, Caller, Sockets};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::{Channel, Endpoint};

/// A connection over plain TCP, once its client has sent something: one that stays silent must not keep out others.
async fn speaking(stream: TcpStream) -> Option<(TcpStream, Caller)> {
    let first = timeout(HANDSHAKE_DEADLINE, stream.peek(&mut [0])).await;
    let is_open = matches!(first, Ok(Ok(1..)));
    is_open.then(|| (stream, Caller::default()))
}

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
            return acceptor::accept(listener, self.admission.clone(), speaking);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::Bounds;
    use futures::StreamExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_plain_connection_is_established_once_its_client_sends_something() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let sockets = NodeSockets {
            tls: None,
            port: Port::Clients,
            admission: Admission::new(Bounds::of(Port::Clients)),
            handshakes: Handle::current(),
        };
        let mut arrivals = sockets.accept(listener);
        let mut silent = TcpStream::connect(address).await.expect("a connection");
        let mut speaking = TcpStream::connect(address).await.expect("a connection");
        for (stream, byte) in [(&mut speaking, 2), (&mut silent, 1)] {
            stream.write_u8(byte).await.expect("it is open");
            let mut arrived = arrivals.next().await.expect("it runs").expect("it arrives");
            assert_eq!(arrived.read_u8().await.ok(), Some(byte));
        }
    }
}
