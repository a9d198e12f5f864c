//! TLS: a node's identity, whom it trusts, and how both change while it runs (ADR 0016).
//!
//! A node has one certificate, for clients, peers and HTTP alike, and trusts what the authorities
//! of one bundle have signed; or it has others for its peers. `certificates` builds rustls's configurations from the files, or reports what is wrong with them; `client_verifier` decides which clients to accept, and
//! `server_verifier` which servers to trust. [`Tls`] holds the newest valid configurations;
//! `reload` checks the files for changes; `dialer` opens connections, each with the newest
//! configuration when it begins. `refusal` describes why one failed, and `log_throttle` limits how
//! often that is logged.

mod caller;
mod certificate;
mod certificates;
mod client_verifier;
mod dialer;
mod invalid;
mod log_throttle;
mod refusal;
mod reload;
mod server_verifier;
#[cfg(test)]
mod tests;

pub use invalid::TlsInvalid;

pub(crate) use caller::caller_of;
pub(crate) use dialer::Dialer;
pub(crate) use reload::keep_fresh;

use self::certificate::describe;
use self::certificates::{Certificates, Contents};
use self::log_throttle::{LogThrottle, RefusedCaller};
use self::refusal::{Kind, words};
use crate::config::ClientCertificates;
use crate::limits::HANDSHAKE_DEADLINE;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Instant, SystemTime};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The files of a node's TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeTlsFiles {
    /// For clients and HTTP.
    pub(crate) clients: TlsFiles,
    /// For peers; the same if not given.
    pub(crate) peers: Option<TlsFiles>,
}

/// Three files that belong together, all in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The configuration keys that name them.
    pub(crate) keys: TlsKeys,
    /// The node's certificate and its intermediates.
    pub(crate) cert: PathBuf,
    /// The certificate's private key.
    pub(crate) key: PathBuf,
    /// The authorities that sign the certificates of nodes and clients.
    pub(crate) ca: PathBuf,
}

/// The configuration keys of three files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TlsKeys {
    /// That of the certificate.
    pub(crate) cert: &'static str,
    /// That of the private key.
    pub(crate) key: &'static str,
    /// That of the authorities.
    pub(crate) ca: &'static str,
}

/// What a node's certificate must be valid for, and what the node requires of its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsRequirements {
    /// The hosts that clients use to connect to the node, with the configuration keys that set them.
    pub(crate) client_hosts: Vec<(&'static str, String)>,
    /// The hosts that peers use.
    pub(crate) peer_hosts: Vec<(&'static str, String)>,
    /// Which callers must present a client certificate.
    pub(crate) client_certificates: ClientCertificates,
}

/// The ports of a node, by who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Port {
    /// Clients, with a certificate or a token; all with a certificate if the configuration requires it.
    Clients,
    /// Nodes, with a certificate that is valid for a server too.
    Peers,
    /// Anyone, with or without a certificate: probes and Prometheus have none, and a call may show a token instead.
    Http,
    /// Probes, Prometheus and operators, with or without a certificate.
    Admin,
}

impl Port {
    /// Its name for operators.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Peers => "peers",
            Self::Http => "http",
            Self::Admin => "admin",
        }
    }
}

/// A node's TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    files: NodeTlsFiles,
    requirements: TlsRequirements,
    // A std lock and not tokio's because it is never held across an await.
    current: RwLock<Arc<Certificates>>,
    /// The refused callers, for the log. A std lock for the same reason.
    refused: Mutex<LogThrottle>,
}

impl Tls {
    /// Loads the files of a node with these requirements.
    ///
    /// # Errors
    /// [`TlsInvalid`] if a node cannot use them.
    pub(crate) fn load(
        files: NodeTlsFiles,
        requirements: TlsRequirements,
    ) -> Result<Self, TlsInvalid> {
        let contents = Contents::read(&files)?;
        let certificates = Certificates::new(contents, &files, &requirements, SystemTime::now())?;
        Ok(Self {
            files,
            requirements,
            current: RwLock::new(Arc::new(certificates)),
            refused: Mutex::new(LogThrottle::new()),
        })
    }

    /// When the certificate in use expires; the first one, if peers have another. In seconds since 1970.
    pub(crate) fn expiry_seconds(&self) -> u64 {
        self.current().not_after_seconds
    }

    /// The same in a readable form.
    pub(crate) fn expiry(&self) -> String {
        describe(self.expiry_seconds())
    }

    /// Checks the files for changes; true if new ones are in use now.
    ///
    /// # Errors
    /// [`TlsInvalid`] if a node cannot use them; the old ones stay in use.
    pub(crate) fn refresh(&self) -> Result<bool, TlsInvalid> {
        let contents = Contents::read(&self.files)?;
        if self.current().contents == contents {
            return Ok(false);
        }
        let requirements = &self.requirements;
        let certificates =
            Certificates::new(contents, &self.files, requirements, SystemTime::now())?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(certificates);
        Ok(true)
    }

    async fn handshake(&self, port: Port, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = self.current().server(port);
        let handshake = TlsAcceptor::from(config).accept(stream);
        timeout(HANDSHAKE_DEADLINE, handshake).await?
    }

    /// [`Tls::handshake`]; `None`, with a log line, for a refused caller.
    pub(crate) async fn handshake_or_log(
        &self,
        port: Port,
        stream: TcpStream,
    ) -> Option<TlsStream<TcpStream>> {
        let from = stream.peer_addr().ok();
        let handshake_result = self.handshake(port, stream).await;
        handshake_result
            .inspect_err(|error| self.tell(from, port, error))
            .ok()
    }

    /// Logs why a connection failed, unless the same was logged recently for the same caller.
    fn tell(&self, from: Option<SocketAddr>, port: Port, error: &io::Error) {
        let address = from.map(|from| from.to_string()).unwrap_or_default();
        if error.kind() != io::ErrorKind::InvalidData {
            // Load balancers connect only to check that the port is open.
            tracing::debug!(from = address, ?port, %error, "a connection ended before its TLS \
                                                            handshake");
            return;
        }
        let refused = RefusedCaller {
            from: from.map(|from| from.ip()),
            port,
            kind: Kind::of(error),
        };
        let log_throttle = self.refused.lock();
        let noted = log_throttle
            .unwrap_or_else(PoisonError::into_inner)
            .note(refused, Instant::now());
        let Some(suppressed_count) = noted else {
            return;
        };
        let error = words(error, port);
        if suppressed_count == 0 {
            tracing::warn!(from = address, ?port, error, "a connection was refused");
        } else {
            tracing::warn!(
                from = address,
                ?port,
                error,
                meanwhile = suppressed_count,
                "a connection was refused, and so were others meanwhile"
            );
        }
    }

    fn current(&self) -> Arc<Certificates> {
        let current = self.current.read();
        current.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
