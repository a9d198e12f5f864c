//! Opens gRPC connections over TLS.

use super::refusal::words;
use super::{Port, Tls};
use axum::http::Uri;
use futures::future::BoxFuture;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tower::Service;

/// Connects to a node.
#[derive(Clone)]
pub(crate) struct Dialer {
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
    pub(crate) fn new(tls: Arc<Tls>, port: Port) -> Self {
        Self {
            tls,
            port,
            last_logged: Arc::default(),
        }
    }

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
