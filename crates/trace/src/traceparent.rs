//! The header `traceparent` of [W3C Trace Context](https://www.w3.org/TR/trace-context/).
//!
//! The library's own parser accepts ids of any width and signed numbers, so callers' headers are
//! validated here.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The header's name, in HTTP and in the metadata of gRPC.
pub const HEADER: &str = "traceparent";

const TRACE_ID_DIGITS: usize = 32;
const PARENT_ID_DIGITS: usize = 16;

/// Parses `VERSION-TRACE-PARENT-FLAGS`, all in lower-case hexadecimal digits. A later version may
/// append more after the flags. `None` for anything else, and for ids of zeros.
#[must_use]
pub fn parse(text: &str) -> Option<SpanContext> {
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
    if !is_legal {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(parent).ok()?,
        TraceFlags::NOT_SAMPLED.with_sampled(flags.is_sampled()),
        true,
        TraceState::NONE,
    );
    context.is_valid().then_some(context)
}

/// The header value that propagates `context`.
#[must_use]
pub fn format(context: &SpanContext) -> String {
    let flags = context.trace_flags() & TraceFlags::SAMPLED;
    format!(
        "00-{}-{}-{flags:02x}",
        context.trace_id(),
        context.span_id()
    )
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
    fn a_context_is_taken_from_what_the_standard_allows_and_from_nothing_else() {
        let nothing = "0".repeat(32);
        let known = format!("00-{TRACE}-{PARENT}-01");
        for (text, expected) in [
            (known.clone(), Some(&known)),
            (format!("00-{TRACE}-{PARENT}-03"), Some(&known)),
            (format!("01-{TRACE}-{PARENT}-01-later"), Some(&known)),
            (format!("00-{TRACE}-{PARENT}-01-more"), None),
            (format!("ff-{TRACE}-{PARENT}-01"), None),
            (format!("00-{nothing}-{PARENT}-01"), None),
            (format!("00-{TRACE}-{}-01", &nothing[..16]), None),
            (format!("00-{}-{PARENT}-01", TRACE.to_uppercase()), None),
            (format!("00-{}-{PARENT}-01", &TRACE[1..]), None),
            (format!("00-{TRACE}-{PARENT}"), None),
            (String::new(), None),
        ] {
            let found = parse(&text).map(|context| format(&context));
            assert_eq!(found.as_ref(), expected, "{text}");
        }
    }

    #[test]
    fn a_trace_that_is_not_sampled_says_so() {
        let context = parse(&format!("00-{TRACE}-{PARENT}-00")).expect("a legal header");
        assert!(!context.is_sampled());
        assert!(format(&context).ends_with("-00"));
    }
}
