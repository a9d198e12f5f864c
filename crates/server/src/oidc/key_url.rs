//! URLs of keys and of discovery documents (X13, H36).

use axum::http::Uri;
use std::fmt;
use std::net::IpAddr;

/// A URL from which a node may fetch keys: `https`, or `http` on this machine, without a user name.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeyUrl {
    uri: Uri,
    /// Invariant: the host of `uri`, without the brackets of an IPv6 address.
    host: String,
}

/// Why a URL is not one of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyUrlInvalid {
    /// It is not a URL with a host.
    #[error("expected a URL such as https://HOST/PATH, but it is something else")]
    Malformed,
    /// It would not protect the keys on their way.
    #[error("expected `https`, or `http` with a loopback host, but it is something else")]
    Scheme,
    /// It has a user name.
    #[error("expected a URL without a user name, but it has one")]
    UserName,
}

impl KeyUrl {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`KeyUrlInvalid`] if no keys are fetched from it.
    pub(crate) fn parse(text: &str) -> Result<Self, KeyUrlInvalid> {
        let uri: Uri = text.parse().map_err(|_| KeyUrlInvalid::Malformed)?;
        let authority = uri.authority().ok_or(KeyUrlInvalid::Malformed)?;
        if authority.as_str().contains('@') {
            return Err(KeyUrlInvalid::UserName);
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() || text.contains('#') {
            return Err(KeyUrlInvalid::Malformed);
        }
        match uri.scheme_str() {
            Some("https") => {}
            Some("http") if is_loopback(&host) => {}
            Some(_) | None => return Err(KeyUrlInvalid::Scheme),
        }
        Ok(Self { uri, host })
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Its host: a name or an IP address.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        let default = if self.is_tls() { 443 } else { 80 };
        self.uri.port_u16().unwrap_or(default)
    }

    pub(super) fn is_tls(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Whether its host is this machine, by its text.
    pub(super) fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for KeyUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(formatter)
    }
}

impl fmt::Debug for KeyUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fetched_over_https_or_on_this_machine() {
        for (text, host, port) in [
            (
                "https://login.acme.example/keys?a=b",
                "login.acme.example",
                443,
            ),
            ("https://10.0.0.1:8443/keys", "10.0.0.1", 8443),
            ("http://127.0.0.1:8080", "127.0.0.1", 8080),
            ("http://localhost/keys", "localhost", 80),
            ("http://[::1]:8080/keys", "::1", 8080),
        ] {
            let url = KeyUrl::parse(text).expect(text);
            assert_eq!((url.host(), url.port()), (host, port), "{text}");
        }
        for (text, expected) in [
            ("", KeyUrlInvalid::Malformed),
            ("/keys", KeyUrlInvalid::Malformed),
            ("https://", KeyUrlInvalid::Malformed),
            ("https://a.example/#keys", KeyUrlInvalid::Malformed),
            ("https://ada:pw@a.example/", KeyUrlInvalid::UserName),
            ("https://127.0.0.1@a.example/", KeyUrlInvalid::UserName),
            ("http://a.example/", KeyUrlInvalid::Scheme),
            ("http://127.0.0.1.a.example/", KeyUrlInvalid::Scheme),
            ("file://localhost/keys", KeyUrlInvalid::Scheme),
        ] {
            assert_eq!(KeyUrl::parse(text), Err(expected), "{text}");
        }
    }
}
