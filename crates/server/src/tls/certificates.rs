//! Builds rustls's configurations from the three files, with every check that makes a later failure
//! easy to diagnose.

use super::caller::is_valid_for;
use super::certificate::{Judge, Usage, describe, not_after_seconds};
use super::client_verifier::ClientVerifier;
use super::server_verifier::ServerVerifier;
use super::{Port, TlsFiles, TlsInvalid, TlsRequirements};
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

/// The bytes of the three files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    ca: Vec<u8>,
}

/// The configurations for connections.
pub(super) struct Certificates {
    /// What they were made from.
    pub(super) contents: Contents,
    /// When the node's own certificate expires. In seconds since 1970.
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
    pub(super) fn read(files: &TlsFiles) -> Result<Self, TlsInvalid> {
        let read = |key, path: &Path| {
            fs::read(path).map_err(|source| TlsInvalid::Unreadable {
                key,
                path: path.to_owned(),
                source,
            })
        };
        Ok(Self {
            cert: read("tls_cert", &files.cert)?,
            key: read("tls_key", &files.key)?,
            ca: read("tls_ca", &files.ca)?,
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
        files: &TlsFiles,
        requirements: &TlsRequirements,
        now: SystemTime,
    ) -> Result<Self, TlsInvalid> {
        let provider = Arc::new(ring::default_provider());
        let chain = certificates("tls_cert", &files.cert, &contents.cert)?;
        let judge = Judge {
            authorities: Arc::new(authorities(&contents, files)?),
            algorithms: provider.signature_verification_algorithms,
        };
        let not_after_seconds = check_own(&judge, &chain, files, now)?;
        check_hosts(&chain, files, &requirements.hosts)?;
        let own = Arc::new(own_key(chain, &contents, files, &provider)?);
        let Verifiers { clients, servers } = verifiers(&judge, files, &provider)?;
        let client_verifier = |usages, is_mandatory| {
            Arc::new(ClientVerifier {
                any: clients.clone(),
                judge: judge.clone(),
                usages,
                is_mandatory,
            })
        };
        let server_verifier = |usages| {
            Arc::new(ServerVerifier {
                any: servers.clone(),
                judge: judge.clone(),
                usages,
            })
        };
        let is_required = requirements.client_certificates == ClientCertificates::Required;
        let server = |verifier: Arc<dyn ClientCertVerifier>, protocols: &[&[u8]]| {
            server_config(&provider, verifier, own.clone(), protocols)
        };
        Ok(Self {
            clients: server(client_verifier(&[Usage::Client], is_required), &[HTTP_2]),
            peers: server(client_verifier(&Usage::ALL, true), &[HTTP_2]),
            http: server(client_verifier(&[Usage::Client], false), &[HTTP_2, HTTP_1]),
            admin: server(client_verifier(&[Usage::Client], false), &[HTTP_2, HTTP_1]),
            to_nodes: client_config(&provider, server_verifier(&[Usage::Server]), own.clone()),
            to_peers: client_config(&provider, server_verifier(&Usage::ALL), own.clone()),
            contents,
            not_after_seconds,
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
                other => malformed("tls_cert", &files.cert, CERTIFICATES, other.to_string()),
            })?;
    }
    not_after_seconds(&chain[0], Usage::Server)
        .map_err(|error| malformed("tls_cert", &files.cert, CERTIFICATES, error.to_string()))
}

fn authorities(contents: &Contents, files: &TlsFiles) -> Result<RootCertStore, TlsInvalid> {
    let mut roots = RootCertStore::empty();
    for authority in certificates("tls_ca", &files.ca, &contents.ca)? {
        roots
            .add(authority)
            .map_err(|error| malformed("tls_ca", &files.ca, CERTIFICATES, error.to_string()))?;
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
        malformed("tls_ca", &files.ca, CERTIFICATES, error.to_string())
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
    let certificate = ParsedCertificate::try_from(&chain[0])
        .map_err(|error| malformed("tls_cert", &files.cert, CERTIFICATES, error.to_string()))?;
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
    contents: &Contents,
    files: &TlsFiles,
    provider: &CryptoProvider,
) -> Result<SingleCertAndKey, TlsInvalid> {
    let unusable = |cause| malformed("tls_key", &files.key, KEY, cause);
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
