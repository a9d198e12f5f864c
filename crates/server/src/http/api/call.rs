//! Serves one call over HTTP.

use super::Api;
use super::etag::KnownTags;
use super::events;
use super::idempotency_key::deduplication_id;
use super::origin;
use super::refusals::{self, invalid_header};
use super::route::Route;
use super::transcoder::{self, Call};
use crate::connections::{Admitted, Busy};
use crate::errors::{Refusal, ServerCode};
use crate::http::path_not_found;
use crate::http::problem::Problem;
use crate::limits::{QUERY_PARAMETERS_MAX, URI_BYTES_MAX};
use axum::body::HttpBody as _;
use axum::extract::{RawPathParams, Request};
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use flotilla_api::json::REQUEST_ID;
use flotilla_replica::Caller;
use prost_reflect::{DynamicMessage, MessageDescriptor, Value};
use std::sync::Arc;
use tonic::body::Body;
use tower::ServiceExt;

/// The caller's timeout for the response, in milliseconds.
const FLO_TIMEOUT_MS: &str = "flo-timeout-ms";
/// The header in which gRPC carries the timeout.
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// The parameter that names a page of a list.
const PAGE_TOKEN: &str = "page_token";
/// The longest timeout that is accepted. In milliseconds.
const TIMEOUT_MS_MAX: u64 = 3_600_000;
/// The headers that are copied to the gRPC request.
const FORWARDED_HEADERS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("x-request-id"),
];
/// The gRPC header that a response over HTTP keeps: it names the leader.
const FLO_LEADER: HeaderName = HeaderName::from_static("flo-leader");
/// The id of the node that has served a call.
const FLO_NODE: HeaderName = HeaderName::from_static("flo-node");
/// The version of that node.
const FLO_VERSION: HeaderName = HeaderName::from_static("flo-version");
/// The cluster's time, in milliseconds since the Unix epoch.
const FLO_NOW_MS: HeaderName = HeaderName::from_static("flo-now-ms");

impl Api {
    /// Serves one call.
    pub(super) async fn call(
        &self,
        route: &Arc<Route>,
        parameters: &RawPathParams,
        request: Request,
    ) -> axum::response::Response {
        let in_progress = self.calls.token();
        if self.context.shutdown.is_cancelled() {
            return refused(Refusal::shutting_down());
        }
        let (parts, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let call = match self.prepare(route, parameters, (&parts, has_body)) {
            Ok(call) => call,
            Err(refusal) => return refused(refusal),
        };
        let headers = match forwarded_headers(&parts.headers) {
            Ok(headers) => headers,
            Err(refusal) => return refused(refusal),
        };
        let extensions = forwarded_extensions(&parts.extensions);
        if route.is_event_stream {
            return match EventCall::new(&parts.headers, call, headers, extensions) {
                Ok(call) => self.events(call).await,
                Err(refusal) => refused(refusal),
            };
        }
        let is_conditional = call.is_conditional;
        let mut request = Request::new(body);
        *request.uri_mut() = call_uri(&route.call_path);
        *request.headers_mut() = headers;
        *request.extensions_mut() = extensions;
        request.extensions_mut().insert(call);
        let mut response = match self.services.clone().oneshot(request).await {
            Ok(response) => to_http(response, is_conditional),
            Err(never) => match never {},
        };
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            self.add_node(response.headers_mut());
        }
        drop(in_progress);
        response
    }

    /// Adds which node has served the call, and the cluster's time (H8).
    fn add_node(&self, headers: &mut HeaderMap) {
        headers.insert(FLO_NODE, self.context.node.0.into());
        let version = HeaderValue::from_static(env!("CARGO_PKG_VERSION"));
        headers.insert(FLO_VERSION, version);
        let now_ms = self.context.node_gateway.now_ms();
        headers.insert(FLO_NOW_MS, now_ms.into());
    }

    /// Makes the call from everything but the body.
    fn prepare(
        &self,
        route: &Arc<Route>,
        parameters: &RawPathParams,
        (parts, has_body): (&Parts, bool),
    ) -> Result<Call, Refusal> {
        origin::check(&self.context, route, parts)?;
        check_path(&parts.uri)?;
        let mut call = Call {
            raw_field: raw_field(route, &parts.headers, has_body)?,
            ..Call::new(Arc::clone(route))
        };
        let values = parameters.into_iter().map(|(_, value)| value);
        for (name, value) in route.variables.iter().zip(values) {
            call.set(name, value)?;
        }
        let query = parts.uri.query().unwrap_or_default();
        if route.has_body && call.raw_field.is_none() && !query.is_empty() {
            let text = "expected all fields in the body, but the URL has a query";
            return Err(Refusal::invalid("query", text));
        }
        set_from_query(&mut call, query)?;
        call.known_tags = KnownTags::of(&parts.headers, &mut call)?;
        if route.request.get_field_by_name(REQUEST_ID).is_some()
            && let Some(id) = deduplication_id(parts)?
        {
            let id = Value::Bytes(id.to_vec().into());
            call.request.set_field_by_name(REQUEST_ID, id);
        }
        Ok(call)
    }
}

/// A call whose response is a stream of events.
pub(super) struct EventCall {
    pub(super) request: DynamicMessage,
    /// The message of each update.
    pub(super) response: MessageDescriptor,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) extensions: Extensions,
    /// The number of the last event that the client has, if it reconnects.
    pub(super) last_event_id: Option<u64>,
}

impl EventCall {
    /// The call, as a request with these headers says.
    fn new(
        given: &HeaderMap,
        call: Call,
        headers: HeaderMap,
        extensions: Extensions,
    ) -> Result<Self, Refusal> {
        if !events::is_accepted(given) {
            return Err(refusals::not_acceptable());
        }
        Ok(Self {
            last_event_id: events::last_event_id(given)?,
            response: call.route.response.clone(),
            uri: call_uri(&call.route.call_path),
            request: call.request,
            headers,
            extensions,
        })
    }

    /// The number of the event after which the stream begins, from the query.
    pub(super) fn after_seq(&self) -> u64 {
        let value = self.request.get_field_by_name("after_seq");
        value.and_then(|value| value.as_u64()).unwrap_or_default()
    }

    /// Keeps the connection from being closed for another one.
    pub(super) fn begin(&self) -> Option<Busy> {
        let connection: Option<&Arc<Admitted>> = self.extensions.get();
        connection.map(Admitted::begin_request)
    }
}

/// The headers of the gRPC request.
fn forwarded_headers(given: &HeaderMap) -> Result<HeaderMap, Refusal> {
    let mut headers = HeaderMap::new();
    for name in FORWARDED_HEADERS {
        for value in given.get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
    if let Some(timeout) = timeout(given)? {
        headers.insert(GRPC_TIMEOUT, timeout);
    }
    Ok(headers)
}

/// The extensions of the gRPC request: the caller and its connection.
fn forwarded_extensions(given: &Extensions) -> Extensions {
    let mut extensions = Extensions::new();
    if let Some(caller) = given.get::<Caller>() {
        extensions.insert(caller.clone());
    }
    if let Some(connection) = given.get::<Arc<Admitted>>() {
        extensions.insert(connection.clone());
    }
    extensions
}

/// The response to a request that does not reach the services.
fn refused(refusal: Refusal) -> axum::response::Response {
    let problem = Problem::from(refusal);
    tracing::debug!(%problem, "refused");
    problem.into_response()
}

/// Sets the fields that the query names. Refuses unknown and repeated parameters, so that a misspelled filter does not match
/// more than the caller meant.
fn set_from_query(call: &mut Call, query: &str) -> Result<(), Refusal> {
    for (number, (name, value)) in form_urlencoded::parse(query.as_bytes()).enumerate() {
        if number >= QUERY_PARAMETERS_MAX {
            let text =
                format!("expected at most {QUERY_PARAMETERS_MAX} parameters, but there are more");
            return Err(Refusal::invalid("query", text));
        }
        // Clients ask for the first page with an empty token.
        if value.is_empty() && name == PAGE_TOKEN {
            continue;
        }
        // Usually a variable of a script that is not set. Without its value, the call would affect more than was meant.
        if value.is_empty() {
            let text = format!("expected `{name}` to have a value, but it is empty");
            return Err(Refusal::invalid(&name, text));
        }
        call.set(&name, &value)?;
    }
    Ok(())
}

/// The field that holds the whole body; `None` if the body is JSON or missing.
fn raw_field(
    route: &Route,
    headers: &HeaderMap,
    has_body: bool,
) -> Result<Option<String>, Refusal> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(refusals::encoded());
    }
    let media_type = headers.get(CONTENT_TYPE).map(|value| {
        let text = value.to_str().unwrap_or_default();
        let media_type = text.split(';').next().unwrap_or_default();
        media_type.trim().to_ascii_lowercase()
    });
    match media_type.as_deref() {
        Some(super::JSON) => Ok(None),
        Some(other) => match route.raw_field(other) {
            Some(field) => Ok(Some(field.to_owned())),
            None => Err(refusals::unsupported(route, Some(other))),
        },
        None if has_body => Err(refusals::unsupported(route, None)),
        None => Ok(None),
    }
}

/// Refuses a path that other programs may change on the way here, and one that is too long.
fn check_path(uri: &Uri) -> Result<(), Refusal> {
    let length = uri.path_and_query().map_or(0, |text| text.as_str().len());
    if length > URI_BYTES_MAX {
        let text = format!("expected a URL of at most {URI_BYTES_MAX} bytes, but it has {length}");
        return Err(Refusal::new(ServerCode::UriTooLong, text));
    }
    let mut segments = uri.path().split('/').skip(1);
    let is_changeable = segments.any(|segment| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        ["", ".", ".."].contains(&plain.as_str())
    });
    match is_changeable {
        true => Err(path_not_found()),
        false => Ok(()),
    }
}

/// The caller's timeout as a value of the header `grpc-timeout`.
fn timeout(headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
    let Some(value) = headers.get(FLO_TIMEOUT_MS) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let timeout_ms = text.parse().ok();
    let timeout_ms = timeout_ms.filter(|timeout_ms| (1..=TIMEOUT_MS_MAX).contains(timeout_ms));
    let timeout_ms: u64 = timeout_ms.ok_or_else(|| {
        invalid_header(format!(
            "expected `Flo-Timeout-Ms` from 1 to {TIMEOUT_MS_MAX}, but it is `{text}`"
        ))
    })?;
    Ok(format!("{timeout_ms}m").try_into().ok())
}

fn call_uri(path: &str) -> Uri {
    // Never the fallback: the path consists of names from the protocol files.
    let path = PathAndQuery::try_from(path).unwrap_or_else(|_| PathAndQuery::from_static("/"));
    Uri::from(path)
}

/// The response over HTTP: a problem if the call failed. A conditional call has `If-Match` or `If-None-Match`.
pub(super) fn to_http(response: Response<Body>, is_conditional: bool) -> axum::response::Response {
    let leader = response.headers().get(FLO_LEADER).cloned();
    let mut response = match transcoder::failure(response.headers()) {
        Some(status) if is_conditional => {
            Problem::from(status).of_conditional_call().into_response()
        }
        Some(status) => Problem::from(status).into_response(),
        None => response.map(axum::body::Body::new),
    };
    if let Some(leader) = leader {
        response.headers_mut().insert(FLO_LEADER, leader);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn route(call: &str) -> Route {
        let routes = Route::all();
        let route = routes
            .into_iter()
            .find(|route| route.call_path.ends_with(call));
        route.expect("it has a route")
    }

    fn call(name: &str) -> Call {
        Call::new(Arc::new(route(name)))
    }

    #[test]
    fn a_path_reaches_the_node_as_it_was_sent() {
        let check = |path: &'static str| check_path(&Uri::from_static(path));
        for path in ["/v1/a", "/v1/a?b=..", "/v1/a/.b/c..", "/v1/a%2Fb"] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
        for path in [
            "/v1/a/",
            "/v1//a",
            "/v1/a/./b",
            "/v1/a/../b",
            "/v1/a/%2E%2e/b",
        ] {
            let refusal = check(path).expect_err("it is refused");
            assert_eq!(refusal.reason(), "path_not_found", "{path}");
        }
        let long = format!("/v1/{}", "a".repeat(URI_BYTES_MAX));
        let refusal = check_path(&long.parse().expect("a path")).expect_err("it is refused");
        assert_eq!(refusal.reason(), "uri_too_long");
    }

    #[test]
    fn a_query_holds_known_parameters_once() {
        let set = |query| {
            let mut call = call("/ListRuns");
            let set = set_from_query(&mut call, query);
            set.map(|()| {
                let found = call.request.get_field_by_name("where");
                found.expect("a field").to_string()
            })
        };
        assert!(set("page_token=&limit=5").is_ok());
        assert_eq!(set("where=a%20%3E+1&limit=5").as_deref(), Ok("\"a > 1\""));
        for (query, expected) in [
            ("limt=5", "did you mean `limit`?"),
            ("limit=0&limit=5", "once"),
            ("workflow=", "empty"),
            ("workflow", "empty"),
            ("request_id=x", "unknown"),
        ] {
            let text = set(query).expect_err("it is refused").to_string();
            assert!(text.contains(expected), "{query}: {text}");
        }
        let many = "where=a&".repeat(QUERY_PARAMETERS_MAX + 1);
        assert!(set(&many).is_err());
    }

    #[test]
    fn a_body_needs_a_media_type_that_the_call_takes() {
        let read = |call, media_type: Option<&str>, has_body| {
            let mut request = Request::builder();
            if let Some(media_type) = media_type {
                request = request.header(CONTENT_TYPE, media_type);
            }
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            raw_field(&route(call), &parts.headers, has_body)
        };
        let json = Some("application/json; charset=utf-8");
        assert_eq!(read("/StartRun", json, true), Ok(None));
        assert_eq!(read("/StartRun", None, false), Ok(None));
        let source = Ok(Some("source".to_owned()));
        assert_eq!(
            read("/CreateWorkflow", Some("application/yaml"), true),
            source
        );
        for (call, media_type) in [
            ("/StartRun", None),
            ("/StartRun", Some("text/plain")),
            ("/StartRun", Some("application/yaml")),
            ("/StartRun", Some("application/x-www-form-urlencoded")),
        ] {
            let refusal = read(call, media_type, true).expect_err("it is refused");
            assert_eq!(refusal.reason(), "media_type_unsupported", "{media_type:?}");
        }
        let form = Some("application/x-www-form-urlencoded");
        assert!(
            read("/StartRun", form, false).is_err(),
            "even without a body"
        );
    }

    #[test]
    fn a_timeout_is_a_number_of_milliseconds() {
        let read = |text: &str| {
            let value = HeaderValue::from_str(text).expect("a header");
            timeout(&HeaderMap::from_iter([(
                HeaderName::from_static(FLO_TIMEOUT_MS),
                value,
            )]))
        };
        assert_eq!(timeout(&HeaderMap::new()), Ok(None));
        assert_eq!(read("250"), Ok(Some(HeaderValue::from_static("250m"))));
        for text in ["0", "-1", "1.5", "3600001", "x"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
