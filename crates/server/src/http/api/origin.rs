//! Refuses requests that a page of another site sends through a browser (H15).
//!
//! Such a request has no token, but it has rights in an open cluster, or through the client certificate of the browser. So a
//! request without a token must name an address or a name of the node in `Host`, and a change without a token must not come
//! from another site.

use super::route::Route;
use crate::access::certificate_missing;
use crate::context::Context;
use crate::errors::{Refusal, ServerCode};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName};
use flotilla_replica::Caller;
use std::net::IpAddr;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses a request that a page of another site may have sent and, with TLS, a request without a credential.
///
/// # Errors
/// The refusal.
pub(super) fn check(context: &Context, route: &Route, parts: &Parts) -> Result<(), Refusal> {
    let headers = &parts.headers;
    if headers.contains_key(AUTHORIZATION) {
        return Ok(());
    }
    let caller = parts.extensions.get::<Caller>();
    let has_certificate = caller.is_some_and(Caller::has_certificate);
    if context.tls.is_some() && !has_certificate {
        return Err(certificate_missing());
    }
    let host = host(parts);
    let own = [&context.http_address, &context.client_address];
    let own_hosts = own.iter().filter_map(|address| host_of(address));
    check_host(host.as_deref(), own_hosts)?;
    match route.is_read() {
        true => Ok(()),
        false => check_site(headers, host.as_deref()),
    }
}

/// The host and port that the request names.
fn host(parts: &Parts) -> Option<String> {
    let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let named = named.or_else(|| parts.uri.authority().map(Authority::as_str));
    named.map(str::to_ascii_lowercase)
}

/// The host of `host:port`.
fn host_of(address: &str) -> Option<String> {
    let authority: Authority = address.parse().ok()?;
    Some(authority.host().to_ascii_lowercase())
}

/// A page can make its own host name resolve to this node (DNS rebinding), but its requests then carry that name.
fn check_host(
    named: Option<&str>,
    mut own_hosts: impl Iterator<Item = String>,
) -> Result<(), Refusal> {
    let host = named.and_then(host_of);
    let is_own = host.as_deref().is_some_and(|host| {
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || literal.parse::<IpAddr>().is_ok() || own_hosts.any(|own| own == host)
    });
    if is_own {
        return Ok(());
    }
    let found = match named {
        Some(named) => format!("it is `{named}`"),
        None => "the header is missing".to_owned(),
    };
    let text = format!("expected `Host` with an address or a name of this node, but {found}");
    Err(Refusal::new(ServerCode::HostUnknown, text).with_hint(
        "use an IP address, `localhost` or the name in `advertise`; with a token, any host is accepted",
    ))
}

fn check_site(headers: &HeaderMap, host: Option<&str>) -> Result<(), Refusal> {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let is_other_site = match (text(&FETCH_SITE), text(&ORIGIN)) {
        (Some(site), _) => !["same-origin", "none"].contains(&site),
        (None, Some(origin)) => origin.split_once("://").map(|(_, named)| named) != host,
        (None, None) => false,
    };
    if !is_other_site {
        return Ok(());
    }
    let text = "expected a change from outside a browser, but a page of another site sent it";
    Err(Refusal::new(ServerCode::OriginRefused, text)
        .with_hint("call the API from outside a browser, or send an API token"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_node_answers_to_its_own_names() {
        let check = |named| check_host(named, [String::from("n1.example.org")].into_iter());
        for host in [
            "localhost:7002",
            "127.0.0.1",
            "[::1]:7002",
            "n1.example.org:7002",
        ] {
            assert_eq!(check(Some(host)), Ok(()), "{host}");
        }
        for host in [
            None,
            Some("evil.example.org"),
            Some("localhost.evil.org"),
            Some(""),
        ] {
            let refusal = check(host).expect_err("it is refused");
            assert_eq!(refusal.reason(), "host_unknown", "{host:?}");
        }
    }

    #[test]
    fn a_change_comes_from_no_other_site() {
        let check = |headers: &[(HeaderName, &'static str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
            check_site(&headers.collect(), Some("localhost:7002"))
        };
        assert_eq!(check(&[]), Ok(()));
        for own in [
            (FETCH_SITE, "none"),
            (FETCH_SITE, "same-origin"),
            (ORIGIN, "http://localhost:7002"),
        ] {
            assert_eq!(check(&[own]), Ok(()));
        }
        for other in [
            (FETCH_SITE, "cross-site"),
            (FETCH_SITE, "same-site"),
            (ORIGIN, "http://evil.example.org"),
            (ORIGIN, "http://localhost:8080"),
            (ORIGIN, "null"),
        ] {
            let refusal = check(&[other]).expect_err("it is refused");
            assert_eq!(refusal.reason(), "origin_refused");
        }
    }
}
