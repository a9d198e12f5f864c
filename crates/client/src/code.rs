//! The codes of errors that this crate itself finds; all others come from the server.

use crate::error::ErrorKind;
use std::fmt;

/// Makes [`ClientCode`] from the table: name, code, kind, meaning.
macro_rules! codes {
    ($($name:ident $code:literal $kind:ident $meaning:literal;)*) => {
        /// The code of an error that this crate itself finds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ClientCode {
            $(#[doc = $meaning] $name,)*
        }

        impl ClientCode {
            /// All of them, in the order of their names.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published spelling, in snake case.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// What the caller can do about it.
            #[must_use]
            pub fn kind(self) -> ErrorKind {
                match self {
                    $(Self::$name => ErrorKind::$kind,)*
                }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    CannotConnect "cannot_connect" CannotConnect
        "No node could be connected to, so nothing was sent.";
    EndpointInvalid "endpoint_invalid" Usage
        "An endpoint is not HOST:PORT, or there is none.";
    StreamLost "stream_lost" Retryable
        "A stream of answers ended too early.";
    Timeout "timeout" Retryable
        "No answer came within the caller's time: the request may have been applied, and may still be.";
    TlsFailed "tls_failed" CannotConnect
        "A node and the client do not agree on TLS, or one does not trust the other's certificate; nothing was sent.";
    TlsInvalid "tls_invalid" Usage
        "A file for TLS cannot be read, or holds something else.";
    TraceparentInvalid "traceparent_invalid" Usage
        "What should be a `traceparent` of W3C's Trace Context cannot be sent as one.";
    Unimplemented "unimplemented" Refused
        "What listens at an endpoint does not serve clients: a node's port for its peers, mostly.";
    WaitTimeout "wait_timeout" Retryable
        "A wait for a run's end is over; the run goes on.";
    WatchEnded "watch_ended" Refused
        "A node ended a watch without the run's last status: a bug of the server.";
    WorkerInvalid "worker_invalid" Usage
        "A worker was set up with something out of its range.";
    WorkerStopped "worker_stopped" Refused
        "A lease was to be extended, but the worker has stopped.";
}

impl fmt::Display for ClientCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
