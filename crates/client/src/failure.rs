//! What a failed attempt means: whether to retry, and whether it may have been applied.

use crate::code::ClientCode;
use crate::error::{ClientError, quota_kind};
use crate::finding::{Finding, FindingKind};
use std::error::Error;
use std::time::Duration;
use tonic::{Code, ConnectError, Status, TimeoutExpired};
use tonic_types::StatusExt;

/// Reasons of UNAVAILABLE that guarantee that the server has not proposed the request.
const NOT_APPLIED: [&str; 6] = [
    "no_leader",
    "node_not_member",
    "not_leader",
    "overloaded",
    "access_not_initialized",
    "credential_uncheckable",
];

/// The hint if nothing listens at an endpoint.
const CHECK_ENDPOINT: &str = "check the endpoint, and that a server is running there";
/// The hint if a connection ends without an answer: servers of other protocols close it.
const CHECK_PORT: &str =
    "if every call fails like this, check that the endpoint is the node's `listen` address";

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The error to return if no further attempt is made.
    pub(crate) error: ClientError,
    /// How to proceed.
    pub(crate) verdict: Verdict,
    /// The cause of the failure.
    pub(crate) blame: Blame,
}

/// What a failed attempt reveals about the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The connection, or the node as a whole.
    Connection,
    /// The node is reachable but does not serve at this time.
    Node,
    /// The request, or the cluster as a whole: another node would respond in the same way.
    Nobody,
}

/// Whether an attempt can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The response is final.
    Final,
    /// Nothing was sent, and another attempt at this node would fail in the same way; another node
    /// may answer.
    Elsewhere,
    /// Another attempt may succeed.
    Again {
        /// The possible effect of the attempt.
        trace: Trace,
        /// How long the server asked to wait.
        delay: Option<Duration>,
    },
}

/// The possible effect of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trace {
    /// None: no connection was made.
    Unsent,
    /// None: the server rejected the request.
    NotApplied,
    /// Unknown: the request was sent and may have been applied.
    Unknown,
}

impl Failure {
    /// Interprets the status of a call to the node at `address`.
    pub(crate) fn from_status(status: &Status, address: &str) -> Self {
        let error = ClientError::from_status(status);
        if !is_ours(status) {
            let error = match status.code() {
                Code::Unimplemented if error.hint().is_none() => no_client_address(address),
                _ => error,
            };
            let verdict = server_verdict(status, &error);
            return Self {
                error,
                verdict,
                blame: server_blame(verdict),
            };
        }
        let verdict = transport_verdict(status);
        let error = match verdict {
            Verdict::Elsewhere
            | Verdict::Again {
                trace: Trace::Unsent,
                ..
            } => connection_failed(status, address),
            Verdict::Again { .. } => {
                let cause = root_cause(status);
                error
                    .with_message(format!("expected an answer from {address}, but {cause}"))
                    .with_hint(CHECK_PORT)
            }
            Verdict::Final => error,
        };
        let blame = match verdict {
            Verdict::Elsewhere | Verdict::Again { .. } => Blame::Connection,
            Verdict::Final => Blame::Node,
        };
        Self {
            error,
            verdict,
            blame,
        }
    }

    /// The TLS handshake with the node at `address` failed.
    pub(crate) fn unsafe_connection(finding: &Finding, address: &str) -> Self {
        let message = format!("expected to connect to {address}, but {}", finding.what);
        let verdict = match finding.kind {
            // As if nothing listened: a restarting node also breaks handshakes off.
            FindingKind::Missed => Verdict::Again {
                trace: Trace::Unsent,
                delay: None,
            },
            FindingKind::Refused | FindingKind::RefusedAfterHandshake => Verdict::Elsewhere,
        };
        Self {
            error: ClientError::new(ClientCode::TlsFailed, message).with_hint(finding.hint),
            verdict,
            blame: Blame::Connection,
        }
    }

    /// A stream that did not begin, or that ended too early without an error.
    pub(crate) fn stream_lost(message: impl Into<String>) -> Self {
        Self {
            error: ClientError::new(ClientCode::StreamLost, message),
            verdict: Verdict::Again {
                trace: Trace::Unknown,
                delay: None,
            },
            blame: Blame::Node,
        }
    }
}

/// Whether the transport on this side made the status: such a status has a source.
fn is_ours(status: &Status) -> bool {
    status.source().is_some()
}

/// Whether what is known of the newest connection explains why this call failed. A call in flight
/// on an older connection may have been applied, whatever happened to the newer one.
pub(crate) fn explains(finding: &Finding, status: &Status) -> bool {
    let was_made = !has_cause::<ConnectError>(status);
    is_ours(status)
        && match finding.kind {
            FindingKind::Missed | FindingKind::Refused => !was_made,
            FindingKind::RefusedAfterHandshake => was_made,
        }
}

fn server_blame(verdict: Verdict) -> Blame {
    match verdict {
        Verdict::Again { delay: None, .. } => Blame::Node,
        // A cluster that asks to wait means all its nodes.
        Verdict::Again { delay: Some(_), .. } | Verdict::Elsewhere | Verdict::Final => {
            Blame::Nobody
        }
    }
}

fn transport_verdict(status: &Status) -> Verdict {
    if has_cause::<TimeoutExpired>(status) {
        return Verdict::Final;
    }
    if status.code() == Code::OutOfRange {
        // A message over the size limit: another attempt would fail in the same way.
        return Verdict::Final;
    }
    let is_unsent = has_cause::<ConnectError>(status);
    Verdict::Again {
        trace: if is_unsent {
            Trace::Unsent
        } else {
            Trace::Unknown
        },
        delay: None,
    }
}

fn server_verdict(status: &Status, error: &ClientError) -> Verdict {
    let delay = status
        .get_details_retry_info()
        .and_then(|info| info.retry_delay);
    match status.code() {
        // Only a rate says when there is room: everything else waits for others, or for a change.
        Code::ResourceExhausted if quota_kind(status).is_some() && delay.is_none() => {
            Verdict::Final
        }
        Code::ResourceExhausted => Verdict::Again {
            trace: Trace::NotApplied,
            delay,
        },
        Code::Unavailable if NOT_APPLIED.contains(&error.code()) => Verdict::Again {
            trace: Trace::NotApplied,
            delay,
        },
        // Sent without a reason by a proxy, or by a server that shuts down.
        Code::Unavailable | Code::Unknown | Code::Cancelled => Verdict::Again {
            trace: Trace::Unknown,
            delay,
        },
        _ => Verdict::Final,
    }
}

/// The server there does not know the call: often it is a node's peer address.
fn no_client_address(address: &str) -> ClientError {
    ClientError::new(
        ClientCode::Unimplemented,
        format!("expected {address} to serve clients, but the server there does not know the call"),
    )
    .with_hint(
        "use the node's `listen` address, by default port 9000: `peer_listen` is for nodes only",
    )
}

fn connection_failed(status: &Status, address: &str) -> ClientError {
    let cause = root_cause(status);
    ClientError::new(
        ClientCode::ConnectionFailed,
        format!("expected to connect to {address}, but {cause}"),
    )
    .with_hint(CHECK_ENDPOINT)
}

fn root_cause(status: &Status) -> &dyn Error {
    let mut cause: &dyn Error = status;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause
}

fn has_cause<E: Error + 'static>(status: &Status) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(status);
    while let Some(error) = cause {
        if error.is::<E>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use std::collections::HashMap;
    use std::io;
    use tokio_rustls::rustls::AlertDescription;
    use tonic_types::ErrorDetails;

    fn said_by_server(code: Code, reason: &str) -> Verdict {
        let details = ErrorDetails::with_error_info(reason, "flotilla", HashMap::new());
        Failure::from_status(
            &Status::with_error_details(code, "expected …", details),
            "a:1",
        )
        .verdict
    }

    #[test]
    fn a_server_without_a_leader_has_not_applied_the_request() {
        let verdict = said_by_server(Code::Unavailable, "no_leader");
        assert_eq!(
            verdict,
            Verdict::Again {
                trace: Trace::NotApplied,
                delay: None
            }
        );
    }

    #[test]
    fn a_leader_that_was_lost_midway_may_have_applied_the_request() {
        let verdict = said_by_server(Code::Unavailable, "outcome_unknown");
        assert_eq!(
            verdict,
            Verdict::Again {
                trace: Trace::Unknown,
                delay: None
            }
        );
    }

    #[test]
    fn a_rejection_stands() {
        assert_eq!(
            said_by_server(Code::NotFound, "run_not_found"),
            Verdict::Final
        );
        assert_eq!(
            said_by_server(Code::DeadlineExceeded, "timeout"),
            Verdict::Final
        );
        assert_eq!(said_by_server(Code::Internal, "internal"), Verdict::Final);
    }

    #[test]
    fn an_overloaded_server_sets_the_delay() {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(70)));
        let status = Status::with_error_details(Code::ResourceExhausted, "expected …", details);
        let delay = Some(Duration::from_millis(70));
        let verdict = Failure::from_status(&status, "a:1").verdict;
        assert_eq!(
            verdict,
            Verdict::Again {
                trace: Trace::NotApplied,
                delay
            }
        );
    }

    #[test]
    fn a_connection_that_breaks_leaves_the_outcome_unknown() {
        let broken = std::io::Error::other("connection reset");
        let failure = Failure::from_status(&Status::from_error(Box::new(broken)), "a:1");
        let message = failure.error.message();
        assert_eq!(message, "expected an answer from a:1, but connection reset");
        assert_eq!(
            failure.verdict,
            Verdict::Again {
                trace: Trace::Unknown,
                delay: None
            }
        );
    }

    #[test]
    fn a_connection_that_was_never_made_leaves_nothing() {
        let refused = ConnectError(Box::new(std::io::Error::other("connection refused")));
        let failure = Failure::from_status(&Status::from_error(Box::new(refused)), "a:1");
        assert_eq!(
            failure.verdict,
            Verdict::Again {
                trace: Trace::Unsent,
                delay: None
            }
        );
        assert_eq!(failure.error.kind(), ErrorKind::ConnectionFailed);
        let message = failure.error.message();
        assert_eq!(
            message,
            "expected to connect to a:1, but connection refused"
        );
    }

    fn alert() -> io::Error {
        let refused = tokio_rustls::rustls::Error::AlertReceived(AlertDescription::UnknownCA);
        io::Error::new(io::ErrorKind::InvalidData, refused)
    }

    #[test]
    fn a_connection_that_is_not_made_safe_this_time_is_like_one_that_is_not_made() {
        let reset = Finding::broken_off(&io::ErrorKind::ConnectionReset.into());
        let error = ClientError::new(ClientCode::TlsInvalid, "expected another key");
        for finding in [reset, Finding::files(&error)] {
            let failure = Failure::unsafe_connection(&finding, "a:1");
            assert_eq!(
                failure.verdict,
                Verdict::Again {
                    trace: Trace::Unsent,
                    delay: None
                },
                "{}",
                failure.error
            );
            assert_eq!(failure.error.code(), "tls_failed");
        }
        let refused = Finding::of(&alert()).expect("it has to do with TLS");
        let verdict = Failure::unsafe_connection(&refused, "a:1").verdict;
        assert_eq!(verdict, Verdict::Elsewhere);
    }

    #[test]
    fn what_became_of_the_next_connection_does_not_explain_a_call_on_the_one_before() {
        let broken = || Box::new(io::Error::other("connection reset"));
        let on_the_way = Status::from_error(broken());
        let not_made = Status::from_error(Box::new(ConnectError(broken())));
        let missed = Finding::broken_off(&io::Error::other("eof"));
        let refused = Finding::of(&alert()).expect("it has to do with TLS");
        for finding in [missed, refused] {
            assert!(explains(&finding, &not_made), "{finding:?}");
            assert!(!explains(&finding, &on_the_way), "{finding:?}");
        }
        let refused_after_handshake =
            Finding::refused_after_handshake(&alert()).expect("it is an alert");
        for finding in [refused_after_handshake, Finding::tls_wanted()] {
            assert!(explains(&finding, &on_the_way), "{finding:?}");
            assert!(!explains(&finding, &not_made), "{finding:?}");
        }
        let said = Status::unavailable("expected a leader");
        assert!(!explains(&Finding::tls_wanted(), &said));
    }

    #[test]
    fn a_port_that_is_not_for_clients_is_recognized() {
        let bare = Status::unimplemented("");
        let failure = Failure::from_status(&bare, "a:9001");
        assert_eq!(failure.verdict, Verdict::Final);
        assert!(
            failure.error.message().contains("a:9001"),
            "{}",
            failure.error
        );
        assert!(
            failure
                .error
                .hint()
                .is_some_and(|hint| hint.contains("peer_listen"))
        );
    }
}
