//! Why a node cannot start or continue.

use crate::config::ConfigInvalid;
use crate::oidc::OidcKeysInvalid;
use crate::secret_file::SecretFileError;
use crate::tls::TlsInvalid;
use flotilla_replica::{FatalError, FormError, StartError};
use flotilla_trace::ExporterError;
use std::net::SocketAddr;
use std::sync::Arc;

/// Why a node cannot start or continue. [`ServerError::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigInvalid),
    /// The listening socket cannot be bound.
    #[error("expected to listen on {address}, but that failed")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The certificates are unusable.
    #[error(transparent)]
    Tls(#[from] TlsInvalid),
    /// The bootstrap token or the keyring cannot be used, or is missing.
    #[error(transparent)]
    SecretFile(#[from] SecretFileError),
    /// The keys of an issuer cannot be used.
    #[error(transparent)]
    OidcKeys(#[from] OidcKeysInvalid),
    /// The exporter of spans cannot start.
    #[error(transparent)]
    Tracer(#[from] ExporterError),
    /// The replica refused to start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The cluster is not formed.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The replica cannot continue: the process must end and be restarted.
    #[error(transparent)]
    Fatal(Arc<FatalError>),
    /// The gRPC server failed.
    #[error("expected to serve clients, but the gRPC server ended")]
    Serve(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The node was stopped before it was ready.
    #[error("expected the node to become ready, but it was stopped")]
    Stopped,
}

impl ServerError {
    /// Whether the settings must change before the node can start.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Config(_) | Self::OidcKeys(_) => true,
            Self::SecretFile(error) => error.is_configuration(),
            Self::Form(_)
            | Self::Fatal(_)
            | Self::Listen { .. }
            | Self::Serve(_)
            | Self::Start(_)
            | Self::Stopped
            | Self::Tls(_)
            | Self::Tracer(_) => false,
        }
    }

    /// Whether the node ended because the cluster removed it, which is not a failure.
    #[must_use]
    pub fn is_removal(&self) -> bool {
        match self {
            Self::Fatal(fatal) => {
                matches!(fatal.as_ref(), FatalError::Refused(StartError::Removed(_)))
            }
            Self::Start(error) => matches!(error, StartError::Removed(_)),
            Self::Config(_)
            | Self::SecretFile(_)
            | Self::OidcKeys(_)
            | Self::Form(_)
            | Self::Tls(_)
            | Self::Tracer(_)
            | Self::Listen { .. }
            | Self::Serve(_)
            | Self::Stopped => false,
        }
    }

    /// What to do about it, if there is a hint.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => error.hint().map(ToOwned::to_owned),
            Self::Listen { .. } => Some("is another process using the port?".to_owned()),
            Self::Tls(error) => Some(error.hint()),
            Self::SecretFile(error) => Some(error.hint()),
            Self::Start(error) => Some(error.hint()),
            Self::Fatal(error) => Some(error.hint()),
            Self::OidcKeys(_) => Some(
                "`jwks_file` is a JSON web key set, and `ca_file` has certificates in PEM"
                    .to_owned(),
            ),
            Self::Form(_) | Self::Tracer(_) | Self::Serve(_) | Self::Stopped => None,
        }
    }
}
