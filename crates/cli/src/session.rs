//! What a verb works with: the cluster and the output.

use crate::arguments::Globals;
use crate::code::Code;
use crate::failure::Failure;
use crate::output::Output;
use flotilla_client::{Client, ClientOptions, TlsIdentity, TlsOptions};
use flotilla_trace::traceparent;
use std::path::PathBuf;
use std::time::Duration;

/// The global flags, put to use.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where to print.
    pub(crate) output: Output,
    endpoints: Vec<String>,
    namespace: String,
    timeout: Duration,
    traceparent: Option<String>,
    tls: TlsFlags,
}

/// The flags for TLS.
#[derive(Debug)]
struct TlsFlags {
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Session {
    /// Takes up the flags.
    pub(crate) fn new(globals: Globals) -> Self {
        Self {
            output: Output::new(globals.format),
            endpoints: globals.endpoint,
            namespace: globals.namespace.unwrap_or_default(),
            timeout: globals.timeout,
            traceparent: globals.traceparent,
            tls: TlsFlags {
                ca: globals.tls_ca,
                cert: globals.tls_cert,
                key: globals.tls_key,
            },
        }
    }

    /// A client of the cluster. Connects when it is first used.
    ///
    /// # Errors
    /// `usage` for an endpoint or a span that is none, or flags for TLS that do not go together.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let client = self.untraced_client()?;
        match &self.traceparent {
            Some(traceparent) if traceparent::parse(traceparent).is_none() => {
                // W3C has it ignored; who gave it should know.
                let note = format!(
                    "--traceparent or TRACEPARENT names no span, and is ignored: {traceparent:?}"
                );
                self.output.note(&note);
                Ok(client)
            }
            Some(traceparent) => Ok(client.with_traceparent(traceparent)?),
            None => Ok(client),
        }
    }

    /// The same for calls that go on for longer than the span in which `flo` was started.
    ///
    /// # Errors
    /// As [`Self::client`].
    pub(crate) fn untraced_client(&self) -> Result<Client, Failure> {
        self.connect(self.endpoints.clone())
    }

    /// A client of this node alone, until it has learnt who leads.
    ///
    /// # Errors
    /// As [`Self::client`].
    pub(crate) fn client_of(&self, address: &str) -> Result<Client, Failure> {
        self.connect(vec![address.to_owned()])
    }

    fn connect(&self, endpoints: Vec<String>) -> Result<Client, Failure> {
        Ok(Client::connect(ClientOptions {
            endpoints,
            namespace: self.namespace.clone(),
            timeout: self.timeout,
            tls: self.tls.options()?,
            ..ClientOptions::default()
        })?)
    }
}

impl TlsFlags {
    /// With what TLS is spoken: only when it is said whom to trust.
    fn options(&self) -> Result<Option<TlsOptions>, Failure> {
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some(TlsIdentity {
                cert: cert.clone(),
                key: key.clone(),
            }),
            (None, None) => None,
            (Some(_), None) => return Err(alone("--tls-cert", "--tls-key")),
            (None, Some(_)) => return Err(alone("--tls-key", "--tls-cert")),
        };
        match &self.ca {
            Some(ca) => Ok(Some(TlsOptions {
                ca: ca.clone(),
                identity,
            })),
            None if identity.is_some() => Err(alone("--tls-cert", "--tls-ca")),
            None => Ok(None),
        }
    }
}

/// A flag was given without the other one.
fn alone(flag: &str, other: &str) -> Failure {
    let message = format!("expected {flag} and {other} together, but {other} is not given");
    Failure::new(Code::Usage, message).with_hint(
        "they may also come from the environment: FLO_TLS_CA, FLO_TLS_CERT and FLO_TLS_KEY",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_for_tls_go_together() {
        let file = |given: bool, name: &str| given.then(|| PathBuf::from(name));
        let options = |ca, cert, key| {
            let flags = TlsFlags {
                ca: file(ca, "ca"),
                cert: file(cert, "cert"),
                key: file(key, "key"),
            };
            flags.options().map_err(|failure| failure.code().to_owned())
        };
        let refused = Err("usage".to_owned());
        assert_eq!(options(false, false, false), Ok(None));
        assert!(
            options(true, true, true)
                .is_ok_and(|tls| tls.is_some_and(|tls| tls.identity.is_some()))
        );
        assert!(
            options(true, false, false)
                .is_ok_and(|tls| tls.is_some_and(|tls| tls.identity.is_none()))
        );
        assert_eq!(options(true, true, false), refused);
        assert_eq!(options(true, false, true), refused);
        assert_eq!(options(false, true, true), refused);
    }
}
