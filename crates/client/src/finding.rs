//! Why a TLS connection failed, for people: rustls and gRPC report only codes, or a broken
//! connection.

use crate::error::ClientError;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

/// The hint if the client's own certificate is refused.
const OWN_CERTIFICATE: &str = "the certificate (`--tls-cert`) must be valid and signed by an authority in the \
                               node's `tls_ca`; `peer_listen` accepts only certificates of nodes";
const AUTHORITIES: &str =
    "`--tls-ca` must name the file with the authority that signed the node's certificate";

/// Why a TLS connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The text after `expected to connect to …, but`.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) hint: &'static str,
    /// What it means for the call.
    pub(crate) kind: FindingKind,
}

/// How a TLS connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingKind {
    /// It was not established, but may be on the next attempt.
    Missed,
    /// One side refused it during the handshake, and would refuse it again.
    Refused,
    /// It was established, but the first message was a refusal.
    RefusedAfterHandshake,
}

/// What is known of the newest connection to a node. The connection that records it and the failing
/// call that needs the reason are in the same process, but gRPC does not carry the reason from one
/// to the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(Arc<Mutex<Option<Finding>>>);

impl Findings {
    /// Forgets the finding when a new connection begins.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Records why a connection failed.
    pub(crate) fn note(&self, finding: Finding) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(finding);
    }

    /// The finding since the newest connection began.
    pub(crate) fn last(&self) -> Option<Finding> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.clone()
    }
}

impl Finding {
    /// The local files cannot be used.
    pub(crate) fn files(error: &ClientError) -> Self {
        Self {
            what: format!("the TLS files are invalid: {error}"),
            hint: "check the files of `--tls-ca`, `--tls-cert` and `--tls-key`",
            // They may be in the middle of a replacement.
            kind: FindingKind::Missed,
        }
    }

    /// The node requires TLS, and this client does not use it.
    pub(crate) fn tls_wanted() -> Self {
        Self {
            what: "the server requires TLS".to_owned(),
            hint: "pass `--tls-ca FILE`, and identify yourself with `--tls-cert FILE` and `--tls-key FILE`",
            kind: FindingKind::RefusedAfterHandshake,
        }
    }

    /// Interprets the error of a TLS handshake; `None` if it has nothing to do with TLS.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        Some(match tls_error(error)? {
            Error::InvalidMessage(_) => Self::no_tls(),
            Error::InvalidCertificate(fault) => Self::of_certificate(fault),
            Error::AlertReceived(alert) => Self::of_alert(*alert),
            other => Self {
                what: format!("the TLS handshake failed: {other}"),
                hint: "nodes speak TLS 1.3",
                kind: FindingKind::Refused,
            },
        })
    }

    /// Interprets the error of the first response: in TLS 1.3, a client learns only from it that it
    /// was refused. Only an alert means a refusal; after any other error the other side may have
    /// accepted the client and executed its request.
    pub(crate) fn refused_after_handshake(error: &io::Error) -> Option<Self> {
        let Error::AlertReceived(alert) = tls_error(error)? else {
            return None;
        };
        Some(Self {
            kind: FindingKind::RefusedAfterHandshake,
            ..Self::of_alert(*alert)
        })
    }

    /// The other side closed the connection during the handshake: a restarting node, or a load
    /// balancer before it.
    pub(crate) fn broken_off(error: &io::Error) -> Self {
        Self {
            what: format!("the connection broke off during the TLS handshake: {error}"),
            hint: "check that a node runs there and uses TLS; if it does not, omit `--tls-ca` and unset FLO_TLS_CA",
            kind: FindingKind::Missed,
        }
    }

    fn no_tls() -> Self {
        Self {
            what: "the server does not speak TLS".to_owned(),
            hint: "omit `--tls-ca` and unset FLO_TLS_CA, or start the node with `tls_cert`, `tls_key` and `tls_ca`",
            kind: FindingKind::Refused,
        }
    }

    fn of_certificate(fault: &CertificateError) -> Self {
        let (what, hint) = match fault {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => (
                "its certificate is not signed by a trusted authority".to_owned(),
                AUTHORITIES,
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                (
                    format!("its certificate is for another host: {fault}"),
                    "use a host name of the certificate, or add this one to it",
                )
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
                format!("its certificate has expired: {fault}"),
                "give the node a new certificate, or check this machine's clock",
            ),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (
                format!("its certificate is not valid yet: {fault}"),
                "check the clocks of this machine and of the machine that made the certificate",
            ),
            other => (format!("its certificate is invalid: {other}"), AUTHORITIES),
        };
        Self {
            what,
            hint,
            kind: FindingKind::Refused,
        }
    }

    fn of_alert(alert: AlertDescription) -> Self {
        let (what, hint) = match alert {
            AlertDescription::CertificateRequired => (
                "it requires a client certificate",
                "identify yourself with `--tls-cert FILE` and `--tls-key FILE`",
            ),
            AlertDescription::UnknownCA | AlertDescription::DecryptError => (
                "this client's certificate is not signed by an authority that it trusts",
                OWN_CERTIFICATE,
            ),
            AlertDescription::CertificateExpired => {
                ("this client's certificate has expired", OWN_CERTIFICATE)
            }
            AlertDescription::UnsupportedCertificate => (
                "this client's certificate is not valid for this address",
                OWN_CERTIFICATE,
            ),
            other => {
                return Self {
                    what: format!("it refuses this client: {other:?}"),
                    hint: OWN_CERTIFICATE,
                    kind: FindingKind::Refused,
                };
            }
        };
        Self {
            what: what.to_owned(),
            hint,
            kind: FindingKind::Refused,
        }
    }
}

fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}
