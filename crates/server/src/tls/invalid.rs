//! Why a node cannot serve with the files of its TLS.

use std::path::PathBuf;

/// Why a node cannot serve with the files of its TLS. [`TlsInvalid::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TlsInvalid {
    /// A file cannot be read.
    #[error("expected to read the file {path} of `{key}`, but that failed")]
    Unreadable {
        /// The key of the configuration.
        key: &'static str,
        /// Its value.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file holds something else.
    #[error("expected the file {path} of `{key}` to hold {expected} in PEM, but {found}")]
    Malformed {
        /// The key of the configuration.
        key: &'static str,
        /// Its value.
        path: PathBuf,
        /// What it is to hold.
        expected: &'static str,
        /// What it holds.
        found: String,
    },
    /// The key belongs to another certificate.
    #[error(
        "expected the key in {key} to be that of the certificate in {cert}, but it is another one's"
    )]
    KeyMismatch {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        cert: PathBuf,
    },
    /// The certificate was valid once.
    #[error("expected the certificate in {path} to be valid, but it was so until {until}")]
    Expired {
        /// Its file.
        path: PathBuf,
        /// Its end.
        until: String,
    },
    /// The certificate will be valid later.
    #[error("expected the certificate in {path} to be valid, but it will be so from {since}")]
    NotYetValid {
        /// Its file.
        path: PathBuf,
        /// Its begin.
        since: String,
    },
    /// The certificate is not made for what a node does.
    #[error(
        "expected the certificate in {path} to name the extended key usage {usage}, but it does not"
    )]
    UsageMissing {
        /// Its file.
        path: PathBuf,
        /// `serverAuth` or `clientAuth`.
        usage: &'static str,
    },
    /// None of the authorities has signed the certificate.
    #[error(
        "expected the certificate in {cert} to be signed by an authority in {ca}, but it is not"
    )]
    Unsigned {
        /// Its file.
        cert: PathBuf,
        /// The file of the authorities.
        ca: PathBuf,
    },
    /// Those who connect to the node would find another one's certificate.
    #[error(
        "expected the certificate in {path} to be for {host}, the node's host in `{key}`, but it is not"
    )]
    NameMissing {
        /// Its file.
        path: PathBuf,
        /// The key of the configuration.
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
                "a path is looked for from the folder that the node was started in, \
                 and the file must be readable for the node's user"
                    .to_owned()
            }
            Self::Malformed { .. } => "`flo cert dev DIR` makes files to compare with".to_owned(),
            Self::KeyMismatch { .. } => {
                "replace both files when a certificate is renewed with a new key".to_owned()
            }
            Self::Expired { .. } => {
                "put a new certificate there, and check the machine's clock".to_owned()
            }
            Self::NotYetValid { .. } => "check the machine's clock".to_owned(),
            Self::UsageMissing { .. } => {
                "a node is a server to some and a client to others: its certificate \
                 needs serverAuth and clientAuth, and so does each between it and the \
                 authority that names usages; FLO_TLS_CERT of a client's shell goes before \
                 a node's file"
                    .to_owned()
            }
            Self::Unsigned { .. } => {
                "nodes know each other by the authorities in `tls_ca`: put the one there that \
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
