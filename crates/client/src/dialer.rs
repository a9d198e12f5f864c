//! Connecting to a node, with or without TLS, and recording why a connection failed.

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

/// The first byte of a TLS alert, with which a TLS server answers a plain-text client. No HTTP/2
/// frame from a server begins with it, because that frame would exceed the client's limit.
const ALERT: u8 = 0x15;

/// Connects to one node.
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
            None => Wire::Plain(stream),
            Some(tls) => Wire::Tls(Box::new(self.handshake(tls, host, stream).await?)),
        };
        Ok(Connection {
            wire,
            has_heard: false,
            findings: self.findings,
        })
    }

    async fn handshake(
        &self,
        tls: &Arc<TlsOptions>,
        host: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let tls = tls.clone();
        // Loading reads files.
        let loaded = spawn_blocking(move || tls.load()).await?;
        let config = loaded.map_err(|error| {
            self.findings.note(Finding::files(&error));
            io::Error::other(error)
        })?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let handshake_result = TlsConnector::from(config).connect(name, stream).await;
        handshake_result.inspect_err(|error| {
            let finding = Finding::of(error).unwrap_or_else(|| Finding::broken_off(error));
            self.findings.note(finding);
        })
    }
}

/// A connection to a node.
#[derive(Debug)]
pub(crate) struct Connection {
    wire: Wire,
    /// Whether the first response has arrived. A later error no longer means that nothing was done.
    has_heard: bool,
    findings: Findings,
}

#[derive(Debug)]
enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection {
    /// Records that the other side refuses the connection, if its first bytes say so.
    fn note_refusal(&self, read: &io::Result<()>, first: &[u8]) {
        let finding = match (&self.wire, read) {
            (Wire::Tls(_), Err(error)) => Finding::refused_after_handshake(error),
            (Wire::Plain(_), Ok(())) if first.first() == Some(&ALERT) => {
                Some(Finding::tls_wanted())
            }
            (Wire::Tls(_), Ok(())) | (Wire::Plain(_), _) => None,
        };
        if let Some(finding) = finding {
            self.findings.note(finding);
        }
    }
}

impl Connection {
    /// Handles the result of a write. If a write fails before the first response, the other side
    /// may have sent a reason: read it first, because the connection is not read after a failed
    /// write.
    fn after_write<T>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.has_heard || !matches!(written, Poll::Ready(Err(_))) {
            return written;
        }
        let mut bytes = [0; 64];
        let mut buffer = ReadBuf::new(&mut bytes);
        // The connection has ended, so the data that it holds is available immediately.
        drop(ready!(self.as_mut().poll_read(context, &mut buffer)));
        written
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Wire::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        });
        if !std::mem::replace(&mut self.has_heard, true) {
            self.note_refusal(&read, &buffer.filled()[before..]);
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Wire::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        self.after_write(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_flush(context),
            Wire::Tls(stream) => Pin::new(stream).poll_flush(context),
        };
        self.after_write(context, written)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Wire::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Wire::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        };
        self.after_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.wire {
            Wire::Plain(stream) => stream.is_write_vectored(),
            Wire::Tls(stream) => stream.is_write_vectored(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::FindingKind;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use std::fs;
    use std::future::poll_fn;
    use tempfile::TempDir;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::version::TLS13;
    use tokio_rustls::rustls::{Error, ServerConfig};
    use tokio_rustls::server;

    /// An unencrypted TLS 1.3 record.
    const FORGED: &[u8] = b"\x17\x03\x03\x00\x20nobody has encrypted these bytes";

    type Server = server::TlsStream<TcpStream>;

    /// Both ends of a TLS connection.
    async fn connected() -> (Connection, Server) {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Arc::new(node(&folder));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let taking = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("somebody dials");
            TlsAcceptor::from(config).accept(stream).await
        });
        let ca = folder.path().join("ca.pem");
        let dialer = Dialer {
            tls: Some(Arc::new(TlsOptions { ca, identity: None })),
            findings: Findings::default(),
        };
        let uri = format!("http://{address}").parse().expect("an address");
        let connection = dialer.dial(&uri).await.expect("it is trusted");
        let taken = taking.await.expect("no panic");
        (connection, taken.expect("it trusts anyone"))
    }

    /// The TLS configuration of a local node. The authority is in the folder.
    fn node(folder: &TempDir) -> ServerConfig {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = || KeyPair::generate().expect("randomness");
        let authority = CertifiedIssuer::self_signed(params, key()).expect("well-formed");
        fs::write(folder.path().join("ca.pem"), authority.pem()).expect("room");
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        let key = key();
        let cert = params.signed_by(&key, &authority).expect("well-formed");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("ring has the suites of TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("they belong together")
    }

    /// Reads one byte.
    async fn read(connection: &mut Connection) -> io::Result<u8> {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        poll_fn(|context| Pin::new(&mut *connection).poll_read(context, &mut buffer)).await?;
        Ok(buffer.filled()[0])
    }

    fn is_alert(error: &io::Error) -> bool {
        let tls = error.get_ref().and_then(|error| error.downcast_ref());
        matches!(tls, Some(&Error::AlertReceived(_)))
    }

    /// Sends invalid data, so that the other side ends the connection with an alert.
    async fn provoke(connection: &mut Connection, mut node: Server) {
        let Wire::Tls(stream) = &mut connection.wire else {
            panic!("it was dialled over TLS");
        };
        let wire = stream.get_mut().0;
        wire.write_all(FORGED).await.expect("the other side reads");
        assert!(node.read_u8().await.is_err(), "it cannot be decoded");
    }

    #[tokio::test]
    async fn an_alert_is_a_refusal_when_it_comes_first() {
        let (mut connection, node) = connected().await;
        provoke(&mut connection, node).await;
        let error = read(&mut connection).await.expect_err("an alert came");
        assert!(is_alert(&error), "{error}");
        let finding = connection.findings.last().expect("it is noted");
        assert_eq!(finding.kind, FindingKind::RefusedAfterHandshake);
    }

    #[tokio::test]
    async fn an_alert_after_an_answer_says_nothing_about_what_was_asked() {
        let (mut connection, mut node) = connected().await;
        node.write_all(b"!").await.expect("the other side reads");
        node.flush().await.expect("the other side reads");
        assert_eq!(read(&mut connection).await.expect("an answer"), b'!');
        provoke(&mut connection, node).await;
        let error = read(&mut connection).await.expect_err("an alert came");
        assert!(is_alert(&error), "{error}");
        assert_eq!(connection.findings.last(), None);
    }

    #[tokio::test]
    async fn a_response_that_cannot_be_read_is_not_a_refusal() {
        let (mut connection, mut node) = connected().await;
        let wire = node.get_mut().0;
        wire.write_all(FORGED).await.expect("the other side reads");
        let error = read(&mut connection).await.expect_err("it is forged");
        assert!(!is_alert(&error), "{error}");
        assert_eq!(connection.findings.last(), None);
    }
}
