//! The codes of errors that this crate detects; all others come from the server.

use crate::error::ErrorKind;
use std::fmt;

/// Generates [`ClientCode`] from the table: name, code, kind, meaning.
macro_rules! codes {
    ($($name:ident $code:literal $kind:ident $meaning:literal;)*) => {
        /// The code of an error that this crate detects.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ClientCode {
            $(#[doc = $meaning] $name,)*
        }

        impl ClientCode {
            /// All codes, in the order of their names.
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

            /// Its meaning, as one sentence.
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
    ConnectionFailed "connection_failed" ConnectionFailed
        "Could not connect to any node, so nothing was sent.";
    EndpointInvalid "endpoint_invalid" Usage
        "An endpoint is not HOST:PORT, or no endpoint is given.";
    MessageTooLarge "message_too_large" Usage
        "A message exceeds the limit of gRPC; the limits of its parts are lower.";
    StreamLost "stream_lost" Retryable
        "A response stream ended too early.";
    Timeout "timeout" Retryable
        "No response arrived before the deadline: the request may have been applied, or may still be.";
    TlsFailed "tls_failed" ConnectionFailed
        "The TLS handshake failed, or a certificate is not trusted; nothing was sent.";
    TlsInvalid "tls_invalid" Usage
        "A TLS file cannot be read or is invalid.";
    TokenInvalid "token_invalid" Usage
        "The API token has characters that no token has.";
    TraceparentInvalid "traceparent_invalid" Usage
        "The `traceparent` cannot be sent as a W3C Trace Context header.";
    Unimplemented "unimplemented" Refused
        "An endpoint does not serve clients; often it is a node's peer address.";
    WaitTimeout "wait_timeout" Retryable
        "The wait for a run's end expired; the run continues.";
    WatchEnded "watch_ended" Refused
        "A node ended a watch without the run's last status: a bug of the server.";
    WorkerInvalid "worker_invalid" Usage
        "A setting of a worker is out of range.";
    WorkerStopped "worker_stopped" Refused
        "A lease could not be extended because the worker has stopped.";
}

impl fmt::Display for ClientCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
