//! The log span of a request: the fields that every log line on its behalf carries.
//!
//! `request_id` is the caller's, from the header `x-request-id`, otherwise drawn here. `trace_id`
//! is that of the caller's trace, from the header `traceparent` of W3C Trace Context. `run_id` is
//! the workflow run that the request is about.

use axum::http::HeaderMap;
use flotilla_trace::traceparent;
use tracing::field::Empty;
use tracing::{Span, info_span};

/// The header with the id of a request.
pub(crate) const REQUEST_ID: &str = "x-request-id";
/// The longest request id that is accepted. In bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// The span of a request with these headers to this method or path.
pub(crate) fn of_request(method: &str, headers: &HeaderMap) -> Span {
    let span = info_span!(
        "request",
        method,
        request_id = Empty,
        trace_id = Empty,
        run_id = Empty
    );
    if span.is_disabled() {
        return span;
    }
    span.record("request_id", request_id(headers));
    let caller = header(headers, traceparent::HEADER).and_then(traceparent::parse);
    if let Some(caller) = caller {
        span.record("trace_id", tracing::field::display(caller.trace_id()));
    }
    span
}

/// The id of a request with these headers: the caller's if it is safe to log, otherwise a new one.
pub(crate) fn request_id(headers: &HeaderMap) -> String {
    let given = header(headers, REQUEST_ID).filter(|id| is_request_id(id));
    given.map_or_else(|| format!("{:016x}", rand::random::<u64>()), str::to_owned)
}

/// Sets the run that the current request is about.
pub(crate) fn note_run(run_id: &str) {
    Span::current().record("run_id", run_id);
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether the text is safe to log.
fn is_request_id(text: &str) -> bool {
    (1..=REQUEST_ID_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_short_and_can_be_printed() {
        assert!(is_request_id("order-7/try.2"));
        for text in ["", "a b", "ä", &"x".repeat(REQUEST_ID_BYTES_MAX + 1)] {
            assert!(!is_request_id(text), "{text}");
        }
    }
}
