//! Making a connection to a node, over TLS or without, and noting why it is none.

use crate::finding::{Finding, Findings};
use crate::tls::TlsOptions;
use hyper_util::rt::TokioIo;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::codegen::http::Uri;
use tonic::codegen::{BoxFuture, Service};

/// The first byte of an alert of TLS, with which it answers those who do not speak it. No frame of HTTP/2
/// from a server begins with it: it would be longer than a client allows.
const ALERT: u8 = 0x15;

/// Makes the connections to one node.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    pub(crate) tls: Option<Arc<TlsOptions>>,
    pub(crate) findings: Findings,
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<Connection>;
    type Error = io::Error;
    type Future = BoxFuture<TokioIo<Connection>, io::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move { Ok(TokioIo::new(dialer.dial(&uri).await?)) })
    }
}

impl Dialer {
    async fn dial(self, uri: &Uri) -> io::Result<Connection> {
        self.findings.clear();
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or_default();
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let wire = match &self.tls {
            None => Wire::Plain {
                stream,
                has_heard: false,
            },
            Some(tls) => Wire::Tls(Box::new(self.greet(tls, host, stream).await?)),
        };
        Ok(Connection {
            wire,
            findings: self.findings,
        })
    }

    async fn greet(
        &self,
        tls: &Arc<TlsOptions>,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let tls = tls.clone();
        // It reads files.
        let loaded = spawn_blocking(move || tls.load()).await?;
        let config = loaded.map_err(|error| {
            self.findings.note(Finding::files(&error));
            io::Error::other(error)
        })?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let greeted = TlsConnector::from(config).connect(name, stream).await;
        greeted.inspect_err(|error| {
            let finding = Finding::of(error).unwrap_or_else(|| Finding::broken_off(error));
            self.findings.note(finding);
        })
    }
}

/// A connection to a node.
#[derive(Debug)]
pub(crate) struct Connection {
    wire: Wire,
    findings: Findings,
}

#[derive(Debug)]
enum Wire {
    Plain { stream: TcpStream, has_heard: bool },
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection {
    /// In TLS 1.3 a client learns with the first answer that it is not let in.
    fn note_refusal(&self, error: &io::Error) {
        if let Some(finding) = Finding::of(error) {
            self.findings.note(finding);
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        match &mut this.wire {
            Wire::Tls(stream) => {
                let read = ready!(Pin::new(stream).poll_read(context, buffer));
                Poll::Ready(read.inspect_err(|error| this.note_refusal(error)))
            }
            Wire::Plain { stream, has_heard } => {
                let before = buffer.filled().len();
                ready!(Pin::new(stream).poll_read(context, buffer))?;
                let first = buffer.filled().get(before).copied();
                if !std::mem::replace(has_heard, true) && first == Some(ALERT) {
                    this.findings.note(Finding::tls_wanted());
                }
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.wire {
            Wire::Plain { stream, .. } => Pin::new(stream).poll_write(context, bytes),
            Wire::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain { stream, .. } => Pin::new(stream).poll_flush(context),
            Wire::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain { stream, .. } => Pin::new(stream).poll_shutdown(context),
            Wire::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.wire {
            Wire::Plain { stream, .. } => Pin::new(stream).poll_write_vectored(context, slices),
            Wire::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.wire {
            Wire::Plain { stream, .. } => stream.is_write_vectored(),
            Wire::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
