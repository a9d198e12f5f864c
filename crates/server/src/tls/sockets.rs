//! Opens and accepts gRPC connections over TLS.

use super::refusal::words;
use super::{Port, Tls};
use crate::limits::TLS_HANDSHAKES_MAX;
use axum::http::Uri;
use flotilla_replica::{Accepted, Arrivals, Sockets};
use futures::StreamExt;
use futures::future::BoxFuture;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tower::Service;

/// gRPC connections over TLS.
pub(crate) struct TlsSockets {
    /// The node's TLS.
    pub(crate) tls: Arc<Tls>,
    /// The port at which they are accepted, and to which port of other nodes they are opened.
    pub(crate) port: Port,
}

impl Sockets for TlsSockets {
    fn channel(&self, endpoint: &Endpoint) -> Channel {
        endpoint.connect_with_connector_lazy(self.dialer())
    }

    fn accept(&self, listener: TcpListener) -> Arrivals {
        let (tls, port) = (self.tls.clone(), self.port);
        let arriving = TcpIncoming::from(listener).with_nodelay(Some(true));
        let handshake_result = arriving.map(move |arrived| accept_tls(tls.clone(), port, arrived));
        // A slow handshake blocks no other connection.
        let handshake_result = handshake_result.buffer_unordered(TLS_HANDSHAKES_MAX);
        Box::pin(handshake_result.filter_map(std::future::ready))
    }
}

impl TlsSockets {
    /// Opens connections.
    pub(super) fn dialer(&self) -> Dialer {
        Dialer {
            tls: self.tls.clone(),
            port: self.port,
            last_logged: Arc::default(),
        }
    }
}

/// An established connection; `None` if it is refused.
async fn accept_tls(
    tls: Arc<Tls>,
    port: Port,
    arrived: io::Result<TcpStream>,
) -> Option<io::Result<Accepted>> {
    let stream = match arrived {
        Ok(stream) => stream,
        Err(error) => return Some(Err(error)),
    };
    // A separate task: the cryptography of one handshake must not wait for that of another.
    let handshake = tokio::spawn(async move { tls.handshake_or_log(port, stream).await });
    let stream = handshake.await.ok()??;
    Some(Ok(Accepted::new(stream)))
}

/// Connects to a node.
#[derive(Clone)]
pub(super) struct Dialer {
    tls: Arc<Tls>,
    port: Port,
    /// The last failure that was logged: it recurs with every attempt.
    last_logged: Arc<Mutex<Option<String>>>,
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TlsStream<TcpStream>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let port = uri.port_u16().unwrap_or_default();
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            let handshake_result = dialer.handshake(host, stream).await;
            dialer.tell(&uri, &handshake_result);
            Ok(TokioIo::new(handshake_result?))
        })
    }
}

impl Dialer {
    /// Performs the TLS handshake with the node at this host.
    pub(super) async fn handshake(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let config = self.tls.current().client(self.port);
        TlsConnector::from(config).connect(name, stream).await
    }

    /// Peers that fail the TLS handshake look like unreachable peers, so the log must say which it
    /// is.
    fn tell(&self, uri: &Uri, handshake_result: &io::Result<TlsStream<TcpStream>>) {
        let mut last_logged = self
            .last_logged
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let failure = handshake_result.as_ref().err();
        let failure = failure.map(|error| words(error, self.port));
        if failure == *last_logged {
            return;
        }
        if let (Some(address), Some(failure)) = (uri.authority(), &failure) {
            tracing::warn!(%address, failure, "the node at this address is not trusted");
        }
        *last_logged = failure;
    }
}
