//! Why a node cannot use its TLS files.

use std::path::PathBuf;

/// Why a node cannot use its TLS files. [`TlsInvalid::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TlsInvalid {
    /// A file cannot be read.
    #[error("expected to read the file {path} of `{key}`, but that failed")]
    Unreadable {
        /// The configuration key.
        key: &'static str,
        /// The configured path.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("expected the file {path} of `{key}` to hold {expected} in PEM, but {found}")]
    Malformed {
        /// The configuration key.
        key: &'static str,
        /// The configured path.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// What it holds.
        found: String,
    },
    /// The key belongs to another certificate.
    #[error("expected the key in {key} to belong to the certificate in {cert}, but it does not")]
    KeyMismatch {
        /// The key file.
        key: PathBuf,
        /// The certificate file.
        cert: PathBuf,
    },
    /// The certificate has expired.
    #[error("expected the certificate in {path} to be valid, but it expired at {until}")]
    Expired {
        /// The certificate file.
        path: PathBuf,
        /// When it expired.
        until: String,
    },
    /// The certificate is not valid yet.
    #[error("expected the certificate in {path} to be valid, but it is not valid before {since}")]
    NotYetValid {
        /// The certificate file.
        path: PathBuf,
        /// When it becomes valid.
        since: String,
    },
    /// The certificate lacks an extended key usage that a node needs.
    #[error(
        "expected the certificate in {path} to name the extended key usage {usage}, but it does not"
    )]
    UsageMissing {
        /// The certificate file.
        path: PathBuf,
        /// `serverAuth` or `clientAuth`.
        usage: &'static str,
    },
    /// No configured authority has signed the certificate.
    #[error(
        "expected the certificate in {cert} to be signed by an authority in {ca}, but it is not"
    )]
    Unsigned {
        /// The certificate file.
        cert: PathBuf,
        /// The file of the authorities.
        ca: PathBuf,
    },
    /// The certificate is for another host than the one that others connect to.
    #[error(
        "expected the certificate in {path} to be for {host}, the node's host in `{key}`, but it is not"
    )]
    NameMissing {
        /// The certificate file.
        path: PathBuf,
        /// The configuration key.
        key: &'static str,
        /// The name or IP address.
        host: String,
    },
}

impl TlsInvalid {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { .. } => {
                "relative paths start at the working directory of the node, and the file must be \
                 readable for the node's user"
                    .to_owned()
            }
            Self::Malformed { .. } => "`flo cert dev DIR` makes files to compare with".to_owned(),
            Self::KeyMismatch { .. } => {
                "replace both files when a certificate is renewed with a new key".to_owned()
            }
            Self::Expired { .. } => {
                "install a new certificate, and check the machine's clock".to_owned()
            }
            Self::NotYetValid { .. } => "check the machine's clock".to_owned(),
            Self::UsageMissing { .. } => {
                "a node acts as a server and as a client: its certificate needs serverAuth and \
                 clientAuth, and so does each intermediate that names usages; FLO_TLS_CERT in a \
                 client's shell overrides a node's file"
                    .to_owned()
            }
            Self::Unsigned { .. } => {
                "nodes trust each other through the authorities in `tls_ca`: add the one that \
                 signed the certificate"
                    .to_owned()
            }
            Self::NameMissing { host, .. } => format!(
                "make a certificate with {host} as one of its subject alternative names; `flo cert dev DIR \
                 --host {host}` does"
            ),
        }
    }
}
