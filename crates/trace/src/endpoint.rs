//! The endpoint that receives spans.

use serde::Deserialize;
use std::fmt;
use std::str::FromStr;
use tonic::codegen::http::Uri;

/// The URL of a collector that accepts OTLP over gRPC, as `http://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Endpoint(String);

/// Why a text is not an [`Endpoint`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointInvalid {
    /// It is not such a URL.
    #[error("expected http://HOST:PORT of a collector, but it is {0:?}")]
    Malformed(String),
    /// It requires TLS.
    #[error(
        "expected http://HOST:PORT of a collector, but it is {0:?}, and TLS to collectors is not \
         supported: run one beside the node, which forwards over TLS"
    )]
    Secure(String),
}

impl FromStr for Endpoint {
    type Err = EndpointInvalid;

    fn from_str(text: &str) -> Result<Self, EndpointInvalid> {
        let invalid = || EndpointInvalid::Malformed(text.to_owned());
        if text.starts_with("https://") {
            return Err(EndpointInvalid::Secure(text.to_owned()));
        }
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let is_legal = uri.scheme_str() == Some("http")
            // No user and no password.
            && !text.contains('@')
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri.port_u16().is_some_and(|port| port > 0)
            && matches!(uri.path(), "" | "/")
            && uri.query().is_none();
        if is_legal {
            Ok(Self(text.to_owned()))
        } else {
            Err(invalid())
        }
    }
}

impl TryFrom<String> for Endpoint {
    type Error = EndpointInvalid;

    fn try_from(text: String) -> Result<Self, EndpointInvalid> {
        text.parse()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_names_a_host_and_a_port_and_nothing_else() {
        for text in [
            "http://127.0.0.1:4317",
            "http://collector.obs:4317/",
            "http://[::1]:4317",
        ] {
            let parsed: Result<Endpoint, _> = text.parse();
            assert_eq!(
                parsed.map(|endpoint| endpoint.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in [
            "",
            "127.0.0.1:4317",
            "http://host",
            "http://host:0",
            "grpc://host:1",
            "http://host:1/v1/traces",
            "http://me:secret@host:1",
        ] {
            let parsed: Result<Endpoint, _> = text.parse();
            assert!(parsed.is_err(), "{text}");
        }
        let secure: Result<Endpoint, _> = "https://host:4317".parse();
        assert!(secure.is_err_and(|invalid| invalid.to_string().contains("TLS")));
    }
}
