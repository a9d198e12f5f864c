//! Why a connection could not be made safe, in words: rustls and gRPC tell it as codes, or as a broken
//! connection.

use crate::error::ClientError;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

/// Where to look for what a client has.
const OWN_CERTIFICATE: &str = "the certificate (`--tls-cert`) must be valid, and signed by an authority in the \
     node's `tls_ca`; only those of nodes are good for `peer_listen`";
const AUTHORITIES: &str =
    "`--tls-ca` must name the file with the authority that signed the node's certificate";

/// Why a connection could not be made safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What follows upon `expected to connect to …, but`.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) hint: &'static str,
    /// What it means for the call.
    pub(crate) outcome: Outcome,
}

/// What has become of a connection that could not be made safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was not made, and may be the next time.
    Missed,
    /// One side did not want it while it was made, and would not the next time.
    Refused,
    /// It was made, and the first thing that came in was that the other side does not want it.
    TurnedAway,
}

/// What was found out about the newest connection to a node. Both of its ends are at work in the same
/// process: the connection that notes it, and the call that fails and looks here for the reason, which gRPC
/// does not carry that far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(Arc<Mutex<Option<Finding>>>);

impl Findings {
    /// A new connection begins.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Notes why the connection is none.
    pub(crate) fn note(&self, finding: Finding) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(finding);
    }

    /// What was noted since the connection began.
    pub(crate) fn last(&self) -> Option<Finding> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.clone()
    }
}

impl Finding {
    /// What stands on this side cannot be used.
    pub(crate) fn files(error: &ClientError) -> Self {
        Self {
            what: format!("the files for TLS are no good: {error}"),
            hint: "look at the files of `--tls-ca`, `--tls-cert` and `--tls-key`",
            // Somebody may be replacing them, one after the other.
            outcome: Outcome::Missed,
        }
    }

    /// The node speaks TLS, and this side does not.
    pub(crate) fn tls_wanted() -> Self {
        Self {
            what: "what listens there speaks TLS only".to_owned(),
            hint: "say whom to trust with `--tls-ca FILE`, and who you are with `--tls-cert FILE` and \
                   `--tls-key FILE`",
            outcome: Outcome::TurnedAway,
        }
    }

    /// What the error says with which agreeing on TLS ended; `None` for one that has nothing to do with TLS.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        Some(match tls_error(error)? {
            Error::InvalidMessage(_) => Self::no_tls(),
            Error::InvalidCertificate(fault) => Self::of_certificate(fault),
            Error::AlertReceived(alert) => Self::of_alert(*alert),
            other => Self {
                what: format!("TLS could not be agreed on: {other}"),
                hint: "nodes speak TLS 1.3",
                outcome: Outcome::Refused,
            },
        })
    }

    /// What the error says with which the first answer failed: in TLS 1.3 a client learns only from this that
    /// it is not let in. Only an alert says so. Whatever else is wrong with an answer, the other side may have
    /// let this one in, and done what it asked.
    pub(crate) fn turned_away(error: &io::Error) -> Option<Self> {
        let Error::AlertReceived(alert) = tls_error(error)? else {
            return None;
        };
        Some(Self {
            outcome: Outcome::TurnedAway,
            ..Self::of_alert(*alert)
        })
    }

    /// The other side went away instead of greeting back: a node that restarts, or a balancer before it.
    pub(crate) fn broken_off(error: &io::Error) -> Self {
        Self {
            what: format!("it broke off instead of agreeing on TLS: {error}"),
            hint: "check that a node listens there, and that it speaks TLS: if not, leave `--tls-ca` away (and \
                   FLO_TLS_CA unset)",
            outcome: Outcome::Missed,
        }
    }

    fn no_tls() -> Self {
        Self {
            what: "what listens there does not speak TLS".to_owned(),
            hint: "leave `--tls-ca` away (and FLO_TLS_CA unset), or start the node with `tls_cert`, `tls_key` \
                   and `tls_ca`",
            outcome: Outcome::Refused,
        }
    }

    fn of_certificate(fault: &CertificateError) -> Self {
        let (what, hint) = match fault {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => (
                "no authority that is trusted here has signed its certificate".to_owned(),
                AUTHORITIES,
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                (
                    format!("its certificate is another host's: {fault}"),
                    "call the node by a name that its certificate has, or give it one with this name",
                )
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
                format!("its certificate is over: {fault}"),
                "give the node a new certificate, and check this machine's clock",
            ),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (
                format!("its certificate is not valid yet: {fault}"),
                "check the clocks of this machine and of the one that made the certificate",
            ),
            other => (format!("its certificate is no good: {other}"), AUTHORITIES),
        };
        Self {
            what,
            hint,
            outcome: Outcome::Refused,
        }
    }

    fn of_alert(alert: AlertDescription) -> Self {
        let (what, hint) = match alert {
            AlertDescription::CertificateRequired => (
                "it lets nobody in without a certificate",
                "say who you are with `--tls-cert FILE` and `--tls-key FILE`",
            ),
            AlertDescription::UnknownCA | AlertDescription::DecryptError => (
                "no authority that it trusts has signed this client's certificate",
                OWN_CERTIFICATE,
            ),
            AlertDescription::CertificateExpired => {
                ("this client's certificate is over", OWN_CERTIFICATE)
            }
            AlertDescription::UnsupportedCertificate => (
                "this client's certificate is not good for what listens there",
                OWN_CERTIFICATE,
            ),
            other => {
                return Self {
                    what: format!("it does not let this client in: {other:?}"),
                    hint: OWN_CERTIFICATE,
                    outcome: Outcome::Refused,
                };
            }
        };
        Self {
            what: what.to_owned(),
            hint,
            outcome: Outcome::Refused,
        }
    }
}

fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}
