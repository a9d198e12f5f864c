//! TLS: who a node is, whom it believes, and how both change while it runs (ADR 0016).
//!
//! A node has one certificate, for clients, peers and HTTP alike, and believes what the authorities of one
//! bundle have signed. `material` makes configurations for rustls of the three files, or says what is wrong
//! with them, in which `door` says who is let in and `callee` who is believed; [`Tls`] holds the newest good
//! ones; `reload` looks at the files again; `sockets` makes connections with them, each with those that are
//! the newest when it begins. `refusal` says why one was not made, and `repeats` how rarely.

mod callee;
mod certificate;
mod door;
mod invalid;
mod material;
mod refusal;
mod reload;
mod repeats;
mod sockets;
#[cfg(test)]
mod tests;

pub use invalid::TlsInvalid;

pub(crate) use reload::keep_fresh;
pub(crate) use sockets::TlsSockets;

use self::certificate::in_words;
use self::material::{Contents, Material};
use self::refusal::{Kind, words};
use self::repeats::{Refused, Repeats};
use crate::limits::TLS_HANDSHAKE_DEADLINE;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Instant, SystemTime};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The files of a node's TLS, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The node's certificate, and those between it and the authority.
    pub(crate) cert: PathBuf,
    /// Its key.
    pub(crate) key: PathBuf,
    /// The authorities that nodes and clients are signed by.
    pub(crate) ca: PathBuf,
}

/// Who comes in at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Port {
    /// Clients, with a certificate.
    Clients,
    /// Nodes, with a certificate that is good for a server, too.
    Peers,
    /// Anyone: probes and Prometheus have no certificate, and a report has its token.
    Http,
}

/// A node's TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    /// The hosts under which others connect to the node, with the keys of the configuration that say so.
    hosts: Vec<(&'static str, String)>,
    // A std lock and not tokio's because it is never held across an await.
    current: RwLock<Arc<Material>>,
    /// Who was not let in, as the log has it. A std lock for the same reason.
    refused: Mutex<Repeats>,
}

impl Tls {
    /// Reads the files of a node that others reach under these hosts.
    ///
    /// # Errors
    /// [`TlsInvalid`] when a node cannot serve with them.
    pub(crate) fn load(
        files: TlsFiles,
        hosts: Vec<(&'static str, String)>,
    ) -> Result<Self, TlsInvalid> {
        let contents = Contents::read(&files)?;
        let material = Material::new(contents, &files, &hosts, SystemTime::now())?;
        Ok(Self {
            files,
            hosts,
            current: RwLock::new(Arc::new(material)),
            refused: Mutex::new(Repeats::new()),
        })
    }

    /// When the certificate in use ceases to be valid. In seconds since 1970.
    pub(crate) fn expiry_seconds(&self) -> u64 {
        self.current().not_after_seconds
    }

    /// The same for people.
    pub(crate) fn expiry(&self) -> String {
        in_words(self.expiry_seconds())
    }

    /// Looks at the files again: whether there was something new that is in use now.
    ///
    /// # Errors
    /// [`TlsInvalid`] when a node cannot serve with them; then what was in use stays so.
    pub(crate) fn refresh(&self) -> Result<bool, TlsInvalid> {
        let contents = Contents::read(&self.files)?;
        if self.current().contents == contents {
            return Ok(false);
        }
        let material = Material::new(contents, &self.files, &self.hosts, SystemTime::now())?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(material);
        Ok(true)
    }

    async fn greet(&self, port: Port, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = self.current().server(port);
        let greeting = TlsAcceptor::from(config).accept(stream);
        timeout(TLS_HANDSHAKE_DEADLINE, greeting).await?
    }

    /// [`Tls::greet`]; `None`, and a line of the log, for whoever is not let in.
    pub(crate) async fn greet_and_tell(
        &self,
        port: Port,
        stream: TcpStream,
    ) -> Option<TlsStream<TcpStream>> {
        let from = stream.peer_addr().ok();
        let greeted = self.greet(port, stream).await;
        greeted
            .inspect_err(|error| self.tell(from, port, error))
            .ok()
    }

    /// Says why a connection did not come about, unless that was said just now of the same caller.
    fn tell(&self, from: Option<SocketAddr>, port: Port, error: &io::Error) {
        let address = from.map(|from| from.to_string()).unwrap_or_default();
        if error.kind() != io::ErrorKind::InvalidData {
            // Balancers connect only to see whether somebody listens.
            tracing::debug!(from = address, ?port, %error, "a connection ended before it began");
            return;
        }
        let refused = Refused {
            from: from.map(|from| from.ip()),
            port,
            kind: Kind::of(error),
        };
        let repeats = self.refused.lock();
        let noted = repeats
            .unwrap_or_else(PoisonError::into_inner)
            .note(refused, Instant::now());
        let Some(unsaid) = noted else { return };
        let error = words(error, port);
        if unsaid == 0 {
            tracing::warn!(from = address, ?port, error, "a connection was not let in");
        } else {
            tracing::warn!(
                from = address,
                ?port,
                error,
                meanwhile = unsaid,
                "a connection was not let in, and so were others meanwhile"
            );
        }
    }

    fn current(&self) -> Arc<Material> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
