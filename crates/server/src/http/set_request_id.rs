//! The id of a request, and the headers that every response has (H8, H15).

use super::problem::Problem;
use crate::span::{self, REQUEST_ID};
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

/// Browsers must not store a response, guess its media type, or send its URL to other sites.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// Gives the request an id, unless the caller has sent one, and returns the id in the response.
pub(super) async fn set_request_id(mut request: Request, next: Next) -> Response {
    let id = span::request_id(request.headers());
    let value = HeaderValue::try_from(id.as_str()).ok();
    if let Some(value) = value.clone() {
        request.headers_mut().insert(REQUEST_ID, value);
    }
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        *response.body_mut() = problem.response(Some(&id)).into_body();
    }
    let headers = response.headers_mut();
    headers.extend(HEADERS);
    if let Some(value) = value {
        headers.insert(REQUEST_ID, value);
    }
    response
}
