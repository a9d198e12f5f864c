//! What a failed attempt means: whether to try again, and whether it may have been applied.

use crate::code::ClientCode;
use crate::error::ClientError;
use crate::finding::{Finding, Outcome};
use std::error::Error;
use std::time::Duration;
use tonic::{Code, ConnectError, Status, TimeoutExpired};
use tonic_types::StatusExt;

/// Reasons with which a server says UNAVAILABLE about a request that it has certainly not proposed.
const NOT_APPLIED: [&str; 4] = ["no_leader", "not_a_member", "not_leader", "overloaded"];

/// What to do when nothing listens at an endpoint.
const CHECK_ENDPOINT: &str = "check the endpoint, and that a server listens there";

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What the caller would be told.
    pub(crate) error: ClientError,
    /// What to do about it.
    pub(crate) verdict: Verdict,
    /// Whose fault it is.
    pub(crate) blame: Blame,
}

/// Whose fault a failed attempt is: what it says about the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// The way to the node, or the node as a whole.
    Connection,
    /// The node is there, but does not serve at this time.
    Node,
    /// The request, or the cluster as a whole: another node would say the same.
    Nobody,
}

/// Whether an attempt can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The answer stands.
    Final,
    /// Nothing was sent, and another attempt at this node would end alike; another node may answer.
    Elsewhere,
    /// Another attempt may succeed.
    Again {
        /// What the attempt left behind.
        trace: Trace,
        /// How long the server asked to wait.
        delay: Option<Duration>,
    },
}

/// What an attempt left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trace {
    /// Nothing: no connection was made.
    Unsent,
    /// Nothing: the server turned it away.
    NotApplied,
    /// Nobody knows: it was sent and may have been applied.
    Unknown,
}

impl Failure {
    /// Reads what came of asking the node at `address`.
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
            } => cannot_connect(status, address),
            Verdict::Again { .. } => {
                let cause = root_cause(status);
                error.with_message(format!("expected an answer from {address}, but {cause}"))
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

    /// The connection to the node at `address` could not be made safe.
    pub(crate) fn unsafe_connection(finding: &Finding, address: &str) -> Self {
        let message = format!("expected to connect to {address}, but {}", finding.what);
        let verdict = match finding.outcome {
            // As where nothing listens: a node that restarts breaks off, too.
            Outcome::Missed => Verdict::Again {
                trace: Trace::Unsent,
                delay: None,
            },
            Outcome::Refused | Outcome::TurnedAway => Verdict::Elsewhere,
        };
        Self {
            error: ClientError::new(ClientCode::TlsFailed, message).with_hint(finding.hint),
            verdict,
            blame: Blame::Connection,
        }
    }

    /// A stream that did not begin, or that ended without an error and too early.
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

/// Whether a status was made on this side, by the transport: such a one has a source.
fn is_ours(status: &Status) -> bool {
    status.source().is_some()
}

/// Whether what was found out about the newest connection is why this call failed. One that was under way on
/// an older connection may have been applied, whatever became of the next.
pub(crate) fn explains(finding: &Finding, status: &Status) -> bool {
    let was_made = !has_cause::<ConnectError>(status);
    is_ours(status)
        && match finding.outcome {
            Outcome::Missed | Outcome::Refused => !was_made,
            Outcome::TurnedAway => was_made,
        }
}

fn server_blame(verdict: Verdict) -> Blame {
    match verdict {
        Verdict::Again { delay: None, .. } => Blame::Node,
        // A cluster that asks to wait asks it for all its nodes.
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
        // A message over the size limit: the next attempt would bring the same one.
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
        Code::ResourceExhausted => Verdict::Again {
            trace: Trace::NotApplied,
            delay,
        },
        Code::Unavailable if NOT_APPLIED.contains(&error.code()) => Verdict::Again {
            trace: Trace::NotApplied,
            delay,
        },
        // A proxy, or a server that is going down, says these without a reason.
        Code::Unavailable | Code::Unknown | Code::Cancelled => Verdict::Again {
            trace: Trace::Unknown,
            delay,
        },
        _ => Verdict::Final,
    }
}

/// Something listens there that does not know the call: a node's port for its peers, mostly.
fn no_client_address(address: &str) -> ClientError {
    ClientError::new(
        ClientCode::Unimplemented,
        format!("expected {address} to serve clients, but what listens there does not know the call"),
    )
    .with_hint("give the address that a node has as `listen`, by default port 9000: `peer_listen` is for nodes only")
}

fn cannot_connect(status: &Status, address: &str) -> ClientError {
    let cause = root_cause(status);
    ClientError::new(
        ClientCode::CannotConnect,
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
        assert_eq!(failure.error.kind(), ErrorKind::CannotConnect);
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
        let error = ClientError::new(ClientCode::TlsInvalid, "another one's key");
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
        let turned_away = Finding::turned_away(&alert()).expect("it is an alert");
        for finding in [turned_away, Finding::tls_wanted()] {
            assert!(explains(&finding, &on_the_way), "{finding:?}");
            assert!(!explains(&finding, &not_made), "{finding:?}");
        }
        let said = Status::unavailable("expected a leader");
        assert!(!explains(&Finding::tls_wanted(), &said));
    }

    #[test]
    fn a_port_that_is_not_for_clients_is_told_apart() {
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
