//! What a command works with: the cluster and the output.

use crate::code::Code;
use crate::failure::Failure;
use crate::file;
use crate::globals::Globals;
use crate::output::Output;
use flotilla_client::{ApiToken, Client, ClientOptions, TlsIdentity, TlsOptions};
use flotilla_trace::traceparent;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The environment variable with the API token.
pub(crate) const TOKEN_VARIABLE: &str = "FLO_TOKEN";

/// The global flags in the form that commands use.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where the command prints.
    pub(crate) output: Output,
    endpoints: Vec<String>,
    namespace: String,
    timeout: Duration,
    traceparent: Option<String>,
    tls: TlsFlags,
    token_file: Option<PathBuf>,
}

/// The TLS flags.
#[derive(Debug)]
struct TlsFlags {
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Session {
    /// Creates a session from the global flags.
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
            token_file: globals.token_file,
        }
    }

    /// How long a call may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A client of the cluster, which connects on first use.
    ///
    /// # Errors
    /// `usage` for an invalid endpoint, or TLS flags that are incomplete.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let client = self.untraced_client()?;
        match &self.traceparent {
            Some(traceparent) if traceparent::parse(traceparent).is_none() => {
                // W3C Trace Context says to ignore it; the caller should still be informed.
                let note = format!(
                    "--traceparent or TRACEPARENT is not a valid trace context and is ignored: {traceparent:?}"
                );
                self.output.note(&note);
                Ok(client)
            }
            Some(traceparent) => Ok(client.with_traceparent(traceparent)?),
            None => Ok(client),
        }
    }

    /// A client for calls that outlast the span in which `flo` was started.
    ///
    /// # Errors
    /// As [`Self::client`].
    pub(crate) fn untraced_client(&self) -> Result<Client, Failure> {
        self.connect(self.endpoints.clone())
    }

    /// A client that calls only this node until it learns who leads.
    ///
    /// # Errors
    /// As [`Self::client`].
    pub(crate) fn client_of(&self, address: &str) -> Result<Client, Failure> {
        self.connect(vec![address.to_owned()])
    }

    /// The API token: that of the file, or else that of the environment. It is never an argument, because other users of the
    /// machine can read those.
    fn token(&self) -> Result<Option<ApiToken>, Failure> {
        let text = match &self.token_file {
            Some(path) => {
                let text = fs::read_to_string(path);
                let name = path.display().to_string();
                let text =
                    text.map_err(|error| file::unreadable(Code::FileUnreadable, &name, &error))?;
                if text.trim().is_empty() {
                    let message =
                        format!("expected {name} to contain an API token, but it is empty");
                    return Err(Failure::new(Code::FileUnreadable, message));
                }
                Some(text)
            }
            None => env::var(TOKEN_VARIABLE).ok(),
        };
        let token = text.as_deref().map(str::trim);
        Ok(token.filter(|text| !text.is_empty()).map(ApiToken::new))
    }

    fn connect(&self, endpoints: Vec<String>) -> Result<Client, Failure> {
        Ok(Client::connect(ClientOptions {
            endpoints,
            namespace: self.namespace.clone(),
            timeout: self.timeout,
            tls: self.tls.options()?,
            token: self.token()?,
            ..ClientOptions::default()
        })?)
    }
}

impl TlsFlags {
    /// The TLS options; TLS is used only if an authority is given.
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

/// The failure for a flag that was given without the one it requires.
fn alone(flag: &str, other: &str) -> Failure {
    let message = format!("expected {flag} and {other} together, but {other} is not given");
    Failure::new(Code::Usage, message).with_hint(
        "you can also set them in the environment: FLO_TLS_CA, FLO_TLS_CERT and FLO_TLS_KEY",
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
