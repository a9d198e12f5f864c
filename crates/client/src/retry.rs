//! When a call is retried, and which error it returns when it gives up (design rule 9).

use crate::backoff::Backoff;
use crate::code::ClientCode;
use crate::error::{ClientError, ErrorKind};
use crate::failure::{Blame, Failure, Trace, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The cluster remembers request ids for 10 minutes; retries stop after half of that.
pub(crate) const REPEATED_FOR_MAX: Duration = Duration::from_secs(5 * 60);

/// Whether a call changes state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// A read: a lost response has no effect.
    Read,
    /// A write: after a lost response the outcome is unknown.
    Write,
}

/// The limits of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Whether it changes state.
    pub(crate) intent: Intent,
    /// The maximum duration, including retries.
    pub(crate) timeout: Duration,
    /// How long it is retried while no node can be connected to.
    pub(crate) unreachable_timeout: Duration,
}

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Retry {
    bounds: Bounds,
    started: Instant,
    attempts: usize,
    backoff: Backoff,
    /// The addresses of the nodes that were called.
    tried: BTreeSet<Arc<str>>,
    /// The node that was called last.
    last: Option<Arc<str>>,
    /// The nodes that refused the last connection and would refuse the next one.
    closed: BTreeSet<Arc<str>>,
    /// Why the TLS connection to a node failed, by address: more specific than a node that is
    /// unreachable.
    barriers: BTreeMap<Arc<str>, Barrier>,
    /// The last error that a node returned, if any: more specific than a failed connection.
    said: Option<ClientError>,
    was_connected: bool,
    may_be_applied: bool,
}

/// Why a TLS connection to a node failed.
#[derive(Debug)]
struct Barrier {
    error: ClientError,
    /// Whether one side refused it; a connection that broke off may be that of a restarting node.
    is_refusal: bool,
}

impl Retry {
    /// Starts now.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            started: Instant::now(),
            attempts: 0,
            backoff: Backoff::default(),
            tried: BTreeSet::new(),
            last: None,
            closed: BTreeSet::new(),
            barriers: BTreeMap::new(),
            said: None,
            was_connected: false,
            may_be_applied: false,
        }
    }

    /// When the caller stops waiting.
    pub(crate) fn deadline(&self) -> Instant {
        self.started + self.bounds.timeout
    }

    /// Whether a copy of the request may be sent at that time.
    pub(crate) fn may_repeat(&self, at: Instant) -> bool {
        at < self.started + REPEATED_FOR_MAX
    }

    /// Records that the node at `address` is about to be called.
    pub(crate) fn begin_attempt(&mut self, address: Arc<str>) {
        self.tried.insert(address.clone());
        self.last = Some(address);
    }

    /// The error if an attempt is still in flight at the deadline.
    pub(crate) fn timed_out(&mut self) -> ClientError {
        self.may_be_applied = true;
        let message = format!(
            "expected an answer from {} within {} ms, but none came",
            self.describe_tried(),
            self.bounds.timeout.as_millis()
        );
        self.give_up(ClientError::new(ClientCode::Timeout, message))
    }

    /// The delay before the next attempt, out of `nodes` nodes.
    ///
    /// # Errors
    /// The error to return if there is no next attempt.
    pub(crate) fn after(
        &mut self,
        failure: Failure,
        nodes: usize,
    ) -> Result<Duration, ClientError> {
        self.note_barrier(&failure);
        let (trace, delay) = match failure.verdict {
            Verdict::Again { trace, delay } => {
                self.open_last();
                (trace, delay)
            }
            Verdict::Elsewhere if self.closed_after_last() < nodes => (Trace::Unsent, None),
            Verdict::Elsewhere => return Err(self.fail(failure)),
            Verdict::Final => return Err(self.conclude(failure.error)),
        };
        self.attempts += 1;
        self.was_connected |= trace != Trace::Unsent;
        self.may_be_applied |= trace == Trace::Unknown;
        let delay = match delay {
            Some(requested) => requested.max(self.backoff.next_delay()),
            // Another node may serve immediately.
            None if self.attempts < nodes => Duration::ZERO,
            None => self.backoff.next_delay(),
        };
        if Instant::now() + delay >= self.last_start() {
            return Err(self.fail(failure));
        }
        if failure.blame != Blame::Connection {
            self.said = Some(failure.error);
        }
        Ok(delay)
    }

    /// Records why the TLS connection to the last node failed.
    fn note_barrier(&mut self, failure: &Failure) {
        let Some(last) = &self.last else { return };
        let known = self.barriers.get(last);
        let was_refused = known.is_some_and(|barrier| barrier.is_refusal);
        let is_refusal = failure.verdict == Verdict::Elsewhere;
        let is_barrier = failure.error.code() == ClientCode::TlsFailed.as_str();
        if failure.blame != Blame::Connection {
            // The node accepted this client.
            self.barriers.remove(last);
        } else if is_barrier && (is_refusal || !was_refused) {
            let error = failure.error.clone();
            let barrier = Barrier { error, is_refusal };
            self.barriers.insert(last.clone(), barrier);
        } else if !was_refused {
            self.barriers.remove(last);
        }
    }

    /// Gives up with the failure, or with a more specific one about the connections.
    fn fail(&mut self, failure: Failure) -> ClientError {
        let barrier = match (failure.blame, failure.verdict) {
            (Blame::Node | Blame::Nobody, _) | (_, Verdict::Final) => None,
            // No node was reached: a refusal takes precedence, and of several the one with the
            // first address, so that the same nodes always give the same message.
            (
                Blame::Connection,
                Verdict::Elsewhere
                | Verdict::Again {
                    trace: Trace::Unsent,
                    ..
                },
            ) => self
                .barriers
                .values()
                .min_by_key(|barrier| !barrier.is_refusal),
            // A node that accepted the client has the more specific error.
            (Blame::Connection, Verdict::Again { .. }) => {
                let last = self.last.as_ref().and_then(|last| self.barriers.get(last));
                last.filter(|barrier| barrier.is_refusal)
            }
        };
        let error = barrier.map(|barrier| barrier.error.clone());
        self.give_up(error.unwrap_or(failure.error))
    }

    /// How many nodes need not be called again, including the last one.
    fn closed_after_last(&mut self) -> usize {
        self.closed.extend(self.last.clone());
        self.closed.len()
    }

    /// The last node no longer refuses the connection, as far as known.
    fn open_last(&mut self) {
        if let Some(last) = &self.last {
            self.closed.remove(last);
        }
    }

    /// The time after which no further attempt begins.
    fn last_start(&self) -> Instant {
        let limit = if self.was_connected {
            self.bounds.timeout.min(REPEATED_FOR_MAX)
        } else {
            self.bounds.timeout.min(self.bounds.unreachable_timeout)
        };
        self.started + limit
    }

    /// Returns a final error, or the deadline as the other side saw it.
    fn conclude(&mut self, error: ClientError) -> ClientError {
        if error.kind() == ErrorKind::Unknown {
            self.timed_out()
        } else {
            error
        }
    }

    fn describe_tried(&self) -> String {
        let tried: Vec<&str> = self.tried.iter().map(AsRef::as_ref).collect();
        tried.join(", ")
    }

    fn give_up(&mut self, error: ClientError) -> ClientError {
        let error = match error.kind() {
            ErrorKind::ConnectionFailed => match self.said.take() {
                Some(said) => said,
                // A failed TLS connection has a more specific hint.
                None if error.code() == ClientCode::TlsFailed.as_str() => error,
                None if self.tried.len() > 1 => {
                    let tried = self.describe_tried();
                    error.with_hint(format!("no node answers, start one of {tried}"))
                }
                None => error,
            },
            _ => error,
        };
        if self.may_be_applied && self.bounds.intent == Intent::Write {
            return error.with_kind(ErrorKind::Unknown).with_hint(
                "the outcome is unknown: check the state, or retry with the same idempotency key",
            );
        }
        let is_unreachable = error.kind() == ErrorKind::ConnectionFailed;
        let is_lost_read = is_unreachable && self.bounds.intent == Intent::Read;
        if !is_lost_read && (self.was_connected || self.may_be_applied) {
            return error.with_kind(ErrorKind::Retryable);
        }
        error.with_kind(ErrorKind::ConnectionFailed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use std::io;
    use tokio_rustls::rustls::{AlertDescription, CertificateError, Error};

    fn retry(intent: Intent) -> Retry {
        Retry::new(Bounds {
            intent,
            timeout: Duration::from_secs(3600),
            unreachable_timeout: Duration::from_secs(3),
        })
    }

    fn failure(trace: Trace) -> Failure {
        Failure {
            error: ClientError::new(ClientCode::StreamLost, "expected a leader"),
            verdict: Verdict::Again { trace, delay: None },
            blame: Blame::Nobody,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_nodes_are_tried_immediately_and_then_after_a_delay() {
        let mut retry = retry(Intent::Write);
        assert_eq!(
            retry.after(failure(Trace::NotApplied), 3),
            Ok(Duration::ZERO)
        );
        assert_eq!(
            retry.after(failure(Trace::NotApplied), 3),
            Ok(Duration::ZERO)
        );
        assert!(retry.after(failure(Trace::NotApplied), 3).expect("retried") > Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn retries_stop_at_half_the_window_of_request_ids() {
        let mut retry = retry(Intent::Write);
        tokio::time::advance(REPEATED_FOR_MAX - Duration::from_secs(2)).await;
        assert!(retry.after(failure(Trace::NotApplied), 1).is_ok());
        tokio::time::advance(Duration::from_secs(2)).await;
        let error = retry
            .after(failure(Trace::NotApplied), 1)
            .expect_err("half the window is over");
        assert_eq!(error.kind(), ErrorKind::Retryable);
    }

    #[tokio::test(start_paused = true)]
    async fn one_lost_answer_leaves_a_write_unknown_and_a_read_retryable() {
        for (intent, kind) in [
            (Intent::Write, ErrorKind::Unknown),
            (Intent::Read, ErrorKind::Retryable),
        ] {
            let mut retry = retry(intent);
            assert!(retry.after(failure(Trace::Unknown), 1).is_ok());
            tokio::time::advance(REPEATED_FOR_MAX).await;
            let error = retry
                .after(failure(Trace::Unsent), 1)
                .expect_err("gives up");
            assert_eq!(error.kind(), kind);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_that_is_not_there_is_given_up_early() {
        let mut retry = retry(Intent::Write);
        assert!(retry.after(failure(Trace::Unsent), 1).is_ok());
        tokio::time::advance(Duration::from_secs(3)).await;
        let error = retry
            .after(failure(Trace::Unsent), 1)
            .expect_err("gives up");
        assert_eq!(error.kind(), ErrorKind::ConnectionFailed);
    }

    fn refused() -> Failure {
        let refused = ClientError::new(ClientCode::ConnectionFailed, "refused");
        Failure {
            error: refused,
            blame: Blame::Connection,
            ..failure(Trace::Unsent)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_node_said_goes_before_that_another_is_not_there() {
        let mut retry = retry(Intent::Read);
        assert!(retry.after(failure(Trace::NotApplied), 2).is_ok());
        tokio::time::advance(REPEATED_FOR_MAX).await;
        let error = retry.after(refused(), 2).expect_err("gives up");
        assert_eq!(
            (error.code(), error.kind()),
            ("stream_lost", ErrorKind::Retryable)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_from_a_node_that_dies_ends_with_connection_failed() {
        let mut retry = retry(Intent::Read);
        assert!(retry.after(broken(), 1).is_ok());
        tokio::time::advance(REPEATED_FOR_MAX).await;
        let error = retry.after(refused(), 1).expect_err("gives up");
        assert_eq!(
            (error.code(), error.kind()),
            ("connection_failed", ErrorKind::ConnectionFailed)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_does_not_trust_the_client_is_asked_once_and_the_others_too() {
        let mut retry = retry(Intent::Write);
        let closed = || Failure {
            error: ClientError::new(ClientCode::TlsFailed, "no certificate"),
            verdict: Verdict::Elsewhere,
            blame: Blame::Connection,
        };
        retry.begin_attempt("a:1".into());
        assert_eq!(retry.after(closed(), 2), Ok(Duration::ZERO));
        retry.begin_attempt("b:1".into());
        let error = retry.after(closed(), 2).expect_err("no node is left");
        assert_eq!(
            (error.code(), error.kind()),
            ("tls_failed", ErrorKind::ConnectionFailed)
        );
        assert_eq!(error.hint(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_away_later_is_asked_again_although_it_refused_before() {
        let mut retry = retry(Intent::Write);
        let closed = || Failure {
            verdict: Verdict::Elsewhere,
            ..refused()
        };
        retry.begin_attempt("a:1".into());
        assert!(retry.after(closed(), 2).is_ok());
        retry.begin_attempt("a:1".into());
        assert!(retry.after(refused(), 2).is_ok(), "it restarts");
        retry.begin_attempt("b:1".into());
        assert!(retry.after(closed(), 2).is_ok(), "a:1 may be another now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_node_that_breaks_off_is_asked_again_until_it_is_given_up() {
        let mut retry = retry(Intent::Write);
        let finding = Finding::broken_off(&io::ErrorKind::ConnectionReset.into());
        let broken_off = || Failure::unsafe_connection(&finding, "a:1");
        retry.begin_attempt("a:1".into());
        assert!(retry.after(broken_off(), 1).is_ok());
        tokio::time::advance(Duration::from_secs(3)).await;
        let error = retry.after(broken_off(), 1).expect_err("gives up");
        assert_eq!(
            (error.code(), error.kind()),
            ("tls_failed", ErrorKind::ConnectionFailed)
        );
        assert!(error.message().contains("broke off"), "{error}");
    }

    /// The certificate of one side has expired.
    fn expired(address: &str, error: Error) -> Failure {
        let finding = Finding::of(&io::Error::other(error)).expect("it has to do with TLS");
        Failure::unsafe_connection(&finding, address)
    }

    #[tokio::test(start_paused = true)]
    async fn that_a_node_does_not_trust_goes_before_that_another_is_not_there() {
        for error in [
            Error::AlertReceived(AlertDescription::CertificateExpired),
            Error::InvalidCertificate(CertificateError::Expired),
        ] {
            for order in [["a:1", "b:1", "a:1"], ["b:1", "a:1", "b:1"]] {
                let mut retry = retry(Intent::Write);
                let mut fail = |address: &str| {
                    retry.begin_attempt(address.into());
                    let failure = match address {
                        "a:1" => refused(),
                        other => expired(other, error.clone()),
                    };
                    retry.after(failure, 2)
                };
                assert!(fail(order[0]).is_ok());
                assert!(fail(order[1]).is_ok(), "a:1 may come back");
                tokio::time::advance(Duration::from_secs(3)).await;
                let told = fail(order[2]).expect_err("gives up");
                let expected = expired("b:1", error.clone()).error;
                assert_eq!(told, expected, "asked in the order {order:?}");
            }
        }
    }

    fn broken() -> Failure {
        Failure {
            blame: Blame::Connection,
            ..failure(Trace::Unknown)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn that_a_node_does_not_trust_goes_before_that_it_breaks_off() {
        let alert = || Error::AlertReceived(AlertDescription::CertificateExpired);
        let missed = Finding::broken_off(&io::ErrorKind::ConnectionReset.into());
        let broken_off = Failure::unsafe_connection(&missed, "b:1");
        for broken in [broken(), broken_off] {
            let mut retry = retry(Intent::Read);
            retry.begin_attempt("b:1".into());
            assert!(retry.after(expired("b:1", alert()), 2).is_ok());
            tokio::time::advance(REPEATED_FOR_MAX * 12).await;
            let told = retry.after(broken, 2).expect_err("gives up");
            assert_eq!(told, expired("b:1", alert()).error);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_outcome_is_reported_even_if_another_node_refused_the_certificate() {
        let alert = Error::AlertReceived(AlertDescription::CertificateExpired);
        let mut retry = retry(Intent::Write);
        retry.begin_attempt("b:1".into());
        assert!(retry.after(expired("b:1", alert), 2).is_ok());
        retry.begin_attempt("a:1".into());
        tokio::time::advance(REPEATED_FOR_MAX).await;
        let told = retry.after(broken(), 2).expect_err("gives up");
        assert_eq!(
            (told.code(), told.kind()),
            ("stream_lost", ErrorKind::Unknown)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_broke_off_and_then_refused_connections_is_reported_as_unreachable() {
        let missed = Finding::broken_off(&io::ErrorKind::ConnectionReset.into());
        for (away, code) in [("a:1", "tls_failed"), ("b:1", "connection_failed")] {
            let mut retry = retry(Intent::Write);
            retry.begin_attempt("b:1".into());
            let broken_off = Failure::unsafe_connection(&missed, "b:1");
            assert!(retry.after(broken_off, 2).is_ok());
            retry.begin_attempt(away.into());
            tokio::time::advance(Duration::from_secs(3)).await;
            let told = retry.after(refused(), 2).expect_err("gives up");
            assert_eq!(told.code(), code, "{away}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_nodes_that_were_asked_are_named() {
        let mut retry = retry(Intent::Read);
        for address in ["b:1", "a:1", "b:1"] {
            retry.begin_attempt(address.into());
        }
        let error = retry.timed_out();
        assert!(error.message().contains("from a:1, b:1 within"), "{error}");
    }
}
