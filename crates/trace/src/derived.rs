//! Ids derived from names: every process that knows a name computes the same id.
//!
//! XXH3 is stable across releases and machines. It is not a cryptographic hash: the names are the
//! cluster's own.

use opentelemetry::trace::{SpanId, TraceId};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The trace id of a name.
#[must_use]
pub fn trace_id(name: &[u8]) -> TraceId {
    // Zero is not a valid id.
    TraceId::from(xxh3_128(name).max(1))
}

/// The span id of a name.
#[must_use]
pub fn span_id(name: &[u8]) -> SpanId {
    SpanId::from(xxh3_64(name).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_same_in_every_release() {
        let trace = trace_id(b"cluster/1/0").to_string();
        let span = span_id(b"cluster/1/0").to_string();
        assert_eq!(trace, "eacb39a003d5305cf8c5633f077dd466");
        assert_eq!(span, "88614a48bab70f10");
    }
}
