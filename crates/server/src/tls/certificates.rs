//! Builds rustls's configurations from the files, with every check that makes a later failure
//! easy to diagnose.

use super::caller::is_valid_for;
use super::certificate::{Judge, Usage, describe, not_after_seconds};
use super::client_verifier::ClientVerifier;
use super::server_verifier::ServerVerifier;
use super::{NodeTlsFiles, Port, TlsFiles, TlsInvalid, TlsRequirements};
use crate::config::ClientCertificates;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::client::{Resumption, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{
    NoServerSessionStorage, ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier,
};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, Error, InconsistentKeys, RootCertStore, ServerConfig};

/// The ALPN protocol of gRPC (RFC 9113).
const HTTP_2: &[u8] = b"h2";
/// The ALPN protocol of the HTTP port.
const HTTP_1: &[u8] = b"http/1.1";
const CERTIFICATES: &str = "a certificate";
const KEY: &str = "a private key";

/// The bytes of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    clients: FileContents,
    /// `None` if the peer port has the same files.
    peers: Option<FileContents>,
}

/// The bytes of three files that belong together.
#[derive(Clone, PartialEq, Eq)]
struct FileContents {
    cert: Vec<u8>,
    key: Vec<u8>,
    ca: Vec<u8>,
}

/// The configurations for connections.
pub(super) struct Certificates {
    /// What they were made from.
    pub(super) contents: Contents,
    /// When the node's own certificate expires: the first one, if it has two. In seconds since 1970.
    pub(super) not_after_seconds: u64,
    clients: Arc<ServerConfig>,
    peers: Arc<ServerConfig>,
    http: Arc<ServerConfig>,
    admin: Arc<ServerConfig>,
    /// For connections to other nodes' client ports.
    to_nodes: Arc<ClientConfig>,
    /// For connections to other nodes' peer ports.
    to_peers: Arc<ClientConfig>,
}

impl Contents {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsInvalid::Unreadable`] names the first file that cannot be read.
    pub(super) fn read(files: &NodeTlsFiles) -> Result<Self, TlsInvalid> {
        Ok(Self {
            clients: FileContents::read(&files.clients)?,
            peers: files.peers.as_ref().map(FileContents::read).transpose()?,
        })
    }
}

impl FileContents {
    fn read(files: &TlsFiles) -> Result<Self, TlsInvalid> {
        let read = |key, path: &Path| {
            fs::read(path).map_err(|source| TlsInvalid::Unreadable {
                key,
                path: path.to_owned(),
                source,
            })
        };
        Ok(Self {
            cert: read(files.keys.cert, &files.cert)?,
            key: read(files.keys.key, &files.key)?,
            ca: read(files.keys.ca, &files.ca)?,
        })
    }
}

impl Certificates {
    /// Makes the configurations for a node with these requirements.
    ///
    /// # Errors
    /// [`TlsInvalid`] names the first error.
    pub(super) fn new(
        contents: Contents,
        files: &NodeTlsFiles,
        requirements: &TlsRequirements,
        now: SystemTime,
    ) -> Result<Self, TlsInvalid> {
        let provider = Arc::new(ring::default_provider());
        let node = |contents, files, hosts: &[_]| {
            Identity::new(TlsSource { contents, files }, hosts, &provider, now)
        };
        let TlsRequirements {
            client_hosts,
            peer_hosts,
            client_certificates,
        } = requirements;
        let (clients, peers) = match (&contents.peers, &files.peers) {
            (Some(of_peers), Some(peer_files)) => (
                node(&contents.clients, &files.clients, client_hosts)?,
                Some(node(of_peers, peer_files, peer_hosts)?),
            ),
            _ => {
                let hosts = [&peer_hosts[..], client_hosts].concat();
                (node(&contents.clients, &files.clients, &hosts)?, None)
            }
        };
        let peers = peers.as_ref().unwrap_or(&clients);
        let is_required = *client_certificates == ClientCertificates::Required;
        let only_client = &[Usage::Client];
        let http = [HTTP_2, HTTP_1];
        Ok(Self {
            not_after_seconds: clients.not_after_seconds.min(peers.not_after_seconds),
            clients: clients.server((only_client, is_required), &[HTTP_2]),
            peers: peers.server((&Usage::ALL, true), &[HTTP_2]),
            http: clients.server((only_client, false), &http),
            admin: clients.server((only_client, false), &http),
            to_nodes: clients.client(&[Usage::Server]),
            to_peers: peers.client(&Usage::ALL),
            contents,
        })
    }

    /// The configuration for accepting connections at a port.
    pub(super) fn server(&self, port: Port) -> Arc<ServerConfig> {
        match port {
            Port::Clients => self.clients.clone(),
            Port::Peers => self.peers.clone(),
            Port::Http => self.http.clone(),
            Port::Admin => self.admin.clone(),
        }
    }

    /// The configuration for connecting to another node's port.
    pub(super) fn client(&self, port: Port) -> Arc<ClientConfig> {
        match port {
            Port::Peers => self.to_peers.clone(),
            Port::Clients | Port::Http | Port::Admin => self.to_nodes.clone(),
        }
    }
}

/// Omits the keys.
impl std::fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Certificates")
            .field("not_after_seconds", &self.not_after_seconds)
            .finish_non_exhaustive()
    }
}

/// Three files with their contents.
struct TlsSource<'s> {
    contents: &'s FileContents,
    files: &'s TlsFiles,
}

/// A certificate of this node, and whom it trusts.
struct Identity<'p> {
    judge: Judge,
    own: Arc<SingleCertAndKey>,
    verifiers: Verifiers,
    not_after_seconds: u64,
    provider: &'p Arc<CryptoProvider>,
}

impl<'p> Identity<'p> {
    /// What the files hold, for a node that others reach at these hosts.
    fn new(
        TlsSource { contents, files }: TlsSource<'_>,
        hosts: &[(&'static str, String)],
        provider: &'p Arc<CryptoProvider>,
        now: SystemTime,
    ) -> Result<Self, TlsInvalid> {
        let chain = certificates(files.keys.cert, &files.cert, &contents.cert)?;
        let judge = Judge {
            authorities: Arc::new(authorities(contents, files)?),
            algorithms: provider.signature_verification_algorithms,
        };
        let not_after_seconds = check_own(&judge, &chain, files, now)?;
        check_hosts(&chain, files, hosts)?;
        Ok(Self {
            own: Arc::new(own_key(chain, contents, files, provider)?),
            verifiers: verifiers(&judge, files, provider)?,
            judge,
            not_after_seconds,
            provider,
        })
    }

    /// Accepts callers whose certificate names these usages; callers without one unless it is mandatory.
    fn server(
        &self,
        (usages, is_mandatory): (&'static [Usage], bool),
        protocols: &[&[u8]],
    ) -> Arc<ServerConfig> {
        let verifier = Arc::new(ClientVerifier {
            any: self.verifiers.clients.clone(),
            judge: self.judge.clone(),
            usages,
            is_mandatory,
        });
        server_config(self.provider, verifier, self.own.clone(), protocols)
    }

    /// Trusts servers whose certificate names these usages.
    fn client(&self, usages: &'static [Usage]) -> Arc<ClientConfig> {
        let verifier = Arc::new(ServerVerifier {
            any: self.verifiers.servers.clone(),
            judge: self.judge.clone(),
            usages,
        });
        client_config(self.provider, verifier, self.own.clone())
    }
}

fn certificates(
    key: &'static str,
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsInvalid> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| malformed(key, path, CERTIFICATES, format!("{error}")))?;
    if found.is_empty() {
        return Err(malformed(
            key,
            path,
            CERTIFICATES,
            "it holds none".to_owned(),
        ));
    }
    Ok(found)
}

/// Checks the node's own certificate: peers that do not trust it would never connect. Returns when
/// the certificate expires.
fn check_own(
    judge: &Judge,
    chain: &[CertificateDer<'_>],
    files: &TlsFiles,
    now: SystemTime,
) -> Result<u64, TlsInvalid> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(now);
    let path = || files.cert.clone();
    for usage in Usage::ALL {
        judge
            .check(&chain[0], &chain[1..], usage, now)
            .map_err(|error| match error {
                webpki::Error::CertExpired { not_after, .. } => TlsInvalid::Expired {
                    path: path(),
                    until: describe(not_after.as_secs()),
                },
                webpki::Error::CertNotValidYet { not_before, .. } => TlsInvalid::NotYetValid {
                    path: path(),
                    since: describe(not_before.as_secs()),
                },
                webpki::Error::RequiredEkuNotFoundContext(_) => TlsInvalid::UsageMissing {
                    path: path(),
                    usage: usage.name(),
                },
                webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey => {
                    TlsInvalid::Unsigned {
                        cert: path(),
                        ca: files.ca.clone(),
                    }
                }
                other => malformed(
                    files.keys.cert,
                    &files.cert,
                    CERTIFICATES,
                    other.to_string(),
                ),
            })?;
    }
    not_after_seconds(&chain[0], Usage::Server).map_err(|error| {
        malformed(
            files.keys.cert,
            &files.cert,
            CERTIFICATES,
            error.to_string(),
        )
    })
}

fn authorities(contents: &FileContents, files: &TlsFiles) -> Result<RootCertStore, TlsInvalid> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(files.keys.ca, &files.ca, &contents.ca)? {
        roots.add(authority).map_err(|error| {
            malformed(files.keys.ca, &files.ca, CERTIFICATES, error.to_string())
        })?;
    }
    Ok(roots)
}

/// rustls's verifiers, which run before the [`Judge`].
struct Verifiers {
    /// For incoming connections.
    clients: Arc<dyn ClientCertVerifier>,
    /// For outgoing connections.
    servers: Arc<dyn ServerCertVerifier>,
}

fn verifiers(
    judge: &Judge,
    files: &TlsFiles,
    provider: &Arc<CryptoProvider>,
) -> Result<Verifiers, TlsInvalid> {
    let roots = || judge.authorities.clone();
    let unusable = |error: VerifierBuilderError| {
        malformed(files.keys.ca, &files.ca, CERTIFICATES, error.to_string())
    };
    let clients = WebPkiClientVerifier::builder_with_provider(roots(), provider.clone());
    let clients = clients.build().map_err(unusable)?;
    let servers = WebPkiServerVerifier::builder_with_provider(roots(), provider.clone());
    let servers = servers.build().map_err(unusable)?;
    Ok(Verifiers { clients, servers })
}

fn check_hosts(
    chain: &[CertificateDer<'_>],
    files: &TlsFiles,
    hosts: &[(&'static str, String)],
) -> Result<(), TlsInvalid> {
    let certificate = ParsedCertificate::try_from(&chain[0]).map_err(|error| {
        malformed(
            files.keys.cert,
            &files.cert,
            CERTIFICATES,
            error.to_string(),
        )
    })?;
    match hosts
        .iter()
        .find(|(_, host)| !is_valid_for(&certificate, host))
    {
        Some((key, host)) => Err(TlsInvalid::NameMissing {
            path: files.cert.clone(),
            key,
            host: host.clone(),
        }),
        None => Ok(()),
    }
}

fn own_key(
    chain: Vec<CertificateDer<'static>>,
    contents: &FileContents,
    files: &TlsFiles,
    provider: &CryptoProvider,
) -> Result<SingleCertAndKey, TlsInvalid> {
    let unusable = |cause| malformed(files.keys.key, &files.key, KEY, cause);
    let key = PrivateKeyDer::from_pem_slice(&contents.key)
        .map_err(|error| unusable(error.to_string()))?;
    let own = CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsInvalid::KeyMismatch {
            key: files.key.clone(),
            cert: files.cert.clone(),
        },
        error => unusable(error.to_string()),
    })?;
    Ok(SingleCertAndKey::from(own))
}

fn server_config(
    provider: &Arc<CryptoProvider>,
    verifier: Arc<dyn ClientCertVerifier>,
    own: Arc<SingleCertAndKey>,
    protocols: &[&[u8]],
) -> Arc<ServerConfig> {
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .expect("ring has the suites of TLS 1.3")
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(own);
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    // A resumed session would not be checked against the current authorities.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

fn client_config(
    provider: &Arc<CryptoProvider>,
    verifier: Arc<ServerVerifier>,
    own: Arc<SingleCertAndKey>,
) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .expect("ring has the suites of TLS 1.3")
        // It is stricter than rustls, never weaker.
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(own);
    config.alpn_protocols = vec![HTTP_2.to_vec()];
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

fn malformed(key: &'static str, path: &Path, expected: &'static str, found: String) -> TlsInvalid {
    TlsInvalid::Malformed {
        key,
        path: path.to_owned(),
        expected,
        found,
    }
}
