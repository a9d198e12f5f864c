//! Connections of gRPC over TLS, made and taken.

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

/// Connections of gRPC over TLS.
pub(crate) struct TlsSockets {
    /// The node's.
    pub(crate) tls: Arc<Tls>,
    /// At which port they are taken, and to which of other nodes they are made.
    pub(crate) port: Port,
}

impl Sockets for TlsSockets {
    fn channel(&self, endpoint: &Endpoint) -> Channel {
        endpoint.connect_with_connector_lazy(self.dialer())
    }

    fn accept(&self, listener: TcpListener) -> Arrivals {
        let (tls, port) = (self.tls.clone(), self.port);
        let arriving = TcpIncoming::from(listener).with_nodelay(Some(true));
        let greeted = arriving.map(move |arrived| let_in(tls.clone(), port, arrived));
        // Whoever is slow to greet back holds up nobody else.
        let greeted = greeted.buffer_unordered(TLS_HANDSHAKES_MAX);
        Box::pin(greeted.filter_map(std::future::ready))
    }
}

impl TlsSockets {
    /// What makes connections.
    pub(super) fn dialer(&self) -> Dialer {
        Dialer {
            tls: self.tls.clone(),
            port: self.port,
            told: Arc::default(),
        }
    }
}

/// A connection that may be talked to; `None` for one that is not let in.
async fn let_in(
    tls: Arc<Tls>,
    port: Port,
    arrived: io::Result<TcpStream>,
) -> Option<io::Result<Accepted>> {
    let stream = match arrived {
        Ok(stream) => stream,
        Err(error) => return Some(Err(error)),
    };
    // A task of its own: the arithmetic of one handshake is not to wait for that of another.
    let greeting = tokio::spawn(async move { tls.greet_and_tell(port, stream).await });
    let stream = greeting.await.ok()??;
    Some(Ok(Accepted::new(stream)))
}

/// Connects to a node.
#[derive(Clone)]
pub(super) struct Dialer {
    tls: Arc<Tls>,
    port: Port,
    /// The failure that was told last: it comes again with every attempt.
    told: Arc<Mutex<Option<String>>>,
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
            let greeted = dialer.greet(host, stream).await;
            dialer.tell(&uri, &greeted);
            Ok(TokioIo::new(greeted?))
        })
    }
}

impl Dialer {
    /// Agrees on TLS with the node at this host.
    pub(super) async fn greet(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let config = self.tls.current().client(self.port);
        TlsConnector::from(config).connect(name, stream).await
    }

    /// Peers that cannot agree on TLS look like peers that are away: the log must say which it is.
    fn tell(&self, uri: &Uri, greeted: &io::Result<TlsStream<TcpStream>>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = greeted.as_ref().err();
        let failure = failure.map(|error| words(error, self.port));
        if failure == *told {
            return;
        }
        if let (Some(address), Some(failure)) = (uri.authority(), &failure) {
            tracing::warn!(%address, failure, "the node at this address is not trusted");
        }
        *told = failure;
    }
}
