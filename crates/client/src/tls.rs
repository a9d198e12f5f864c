//! The TLS files of a client.

use crate::code::ClientCode;
use crate::error::ClientError;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, Error, InconsistentKeys, RootCertStore};

/// The protocol that gRPC negotiates.
const HTTP_2: &[u8] = b"h2";
const CERTIFICATE: &str = "a certificate";
const PRIVATE_KEY: &str = "a private key";

/// The TLS files of a client, in PEM. They are read again for each connection, so that a long-lived
/// client uses renewed ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// The authorities that sign the certificates of nodes.
    pub ca: PathBuf,
    /// The client's certificate and key. Nodes with TLS require them.
    pub identity: Option<TlsIdentity>,
}

/// The identity of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsIdentity {
    /// Its certificate, with any intermediate certificates.
    pub cert: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

impl TlsOptions {
    /// Reads the files.
    ///
    /// # Errors
    /// `Usage` if a file is unreadable or invalid.
    pub(crate) fn load(&self) -> Result<Arc<ClientConfig>, ClientError> {
        let mut roots = RootCertStore::empty();
        for authority in certificates(&self.ca)? {
            let added = roots.add(authority);
            added.map_err(|error| malformed(&self.ca, CERTIFICATE, &error.to_string()))?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("ring has the suites of TLS 1.3")
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = certificates(&identity.cert)?;
                let key = PrivateKeyDer::from_pem_slice(&read(&identity.key)?)
                    .map_err(|error| malformed(&identity.key, PRIVATE_KEY, &error.to_string()))?;
                let certified = builder.with_client_auth_cert(chain, key);
                certified.map_err(|error| identity.unusable(&error))?
            }
        };
        config.alpn_protocols = vec![HTTP_2.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }
}

impl TlsIdentity {
    fn unusable(&self, error: &Error) -> ClientError {
        if !matches!(
            error,
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch)
        ) {
            return malformed(&self.key, PRIVATE_KEY, &error.to_string());
        }
        let (key, cert) = (self.key.display(), self.cert.display());
        let message = format!(
            "expected the key in {key} to belong to the certificate in {cert}, but it does not"
        );
        ClientError::new(ClientCode::TlsInvalid, message)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let pem = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| malformed(path, CERTIFICATE, &error.to_string()))?;
    if found.is_empty() {
        return Err(malformed(path, CERTIFICATE, "it holds none"));
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>, ClientError> {
    fs::read(path).map_err(|error| {
        let message = format!("expected to read the file {}, but {error}", path.display());
        ClientError::new(ClientCode::TlsInvalid, message)
            .with_hint("relative paths start at the current directory")
    })
}

fn malformed(path: &Path, expected: &str, found: &str) -> ClientError {
    let message = format!(
        "expected the file {} to hold {expected} in PEM, but {found}",
        path.display()
    );
    ClientError::new(ClientCode::TlsInvalid, message)
}
