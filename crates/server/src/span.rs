//! The span of a request: what every line of the log that is written on its behalf carries.
//!
//! `request_id` is the caller's, from the header `x-request-id`, else drawn here. `trace_id` is that of
//! the caller's trace, from the header `traceparent` of W3C's Trace Context. `run_id` is the workflow run
//! that the request is about.

use axum::http::HeaderMap;
use tracing::field::Empty;
use tracing::{Span, info_span};

const REQUEST_ID: &str = "x-request-id";
const TRACE_PARENT: &str = "traceparent";
/// A caller's request id. In bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;
const TRACE_ID_DIGITS: usize = 32;
const PARENT_ID_DIGITS: usize = 16;

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
    match header(headers, REQUEST_ID).filter(|id| is_request_id(id)) {
        Some(id) => span.record("request_id", id),
        None => span.record("request_id", format!("{:016x}", rand::random::<u64>())),
    };
    if let Some(trace_id) = header(headers, TRACE_PARENT).and_then(trace_id) {
        span.record("trace_id", trace_id);
    }
    span
}

/// Notes the run that the request in hand is about.
pub(crate) fn note_run(run_id: &str) {
    Span::current().record("run_id", run_id);
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether a log may repeat it.
fn is_request_id(text: &str) -> bool {
    (1..=REQUEST_ID_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The trace id in `VERSION-TRACE-PARENT-FLAGS`, all in lower-case hexadecimal digits. A later version may
/// say more behind the flags.
fn trace_id(text: &str) -> Option<&str> {
    let mut parts = text.split('-');
    let (version, trace, parent, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_last = parts.next().is_none();
    let is_legal = is_hex(version, 2)
        && version != "ff"
        && (is_last || version != "00")
        && is_hex(trace, TRACE_ID_DIGITS)
        && is_hex(parent, PARENT_ID_DIGITS)
        && is_hex(flags, 2);
    let is_null = |id: &str| id.bytes().all(|digit| digit == b'0');
    (is_legal && !is_null(trace) && !is_null(parent)).then_some(trace)
}

fn is_hex(text: &str, digits: usize) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == digits && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn a_trace_id_is_taken_from_what_the_standard_allows_and_from_nothing_else() {
        let nothing = "0".repeat(32);
        for (text, expected) in [
            (format!("00-{TRACE}-{PARENT}-01"), Some(TRACE)),
            (format!("01-{TRACE}-{PARENT}-01-later"), Some(TRACE)),
            (format!("00-{TRACE}-{PARENT}-01-more"), None),
            (format!("ff-{TRACE}-{PARENT}-01"), None),
            (format!("00-{nothing}-{PARENT}-01"), None),
            (format!("00-{TRACE}-{}-01", &nothing[..16]), None),
            (format!("00-{}-{PARENT}-01", TRACE.to_uppercase()), None),
            (format!("00-{TRACE}-{PARENT}"), None),
            (String::new(), None),
        ] {
            assert_eq!(trace_id(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_request_id_is_short_and_can_be_printed() {
        assert!(is_request_id("order-7/try.2"));
        for text in ["", "a b", "ä", &"x".repeat(REQUEST_ID_BYTES_MAX + 1)] {
            assert!(!is_request_id(text), "{text}");
        }
    }
}
