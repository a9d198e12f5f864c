//! The W3C trace context of a caller's request.

use serde::{Deserialize, Serialize};
use std::num::{NonZeroU64, NonZeroU128};

/// The caller's position in a trace, as `traceparent` carries it. Ids that are all zero are invalid there and cannot be
/// represented here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    trace_id: NonZeroU128,
    parent_id: NonZeroU64,
    is_sampled: bool,
}

impl TraceContext {
    /// Creates a context from the trace id and the caller's span id, in the byte order of `traceparent`; `None` if one
    /// of them is all zero.
    #[must_use]
    pub fn new(trace_id: [u8; 16], parent_id: [u8; 8], is_sampled: bool) -> Option<Self> {
        Some(Self {
            trace_id: NonZeroU128::new(u128::from_be_bytes(trace_id))?,
            parent_id: NonZeroU64::new(u64::from_be_bytes(parent_id))?,
            is_sampled,
        })
    }

    /// The trace id.
    #[must_use]
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id.get().to_be_bytes()
    }

    /// The id of the caller's span.
    #[must_use]
    pub fn parent_id(&self) -> [u8; 8] {
        self.parent_id.get().to_be_bytes()
    }

    /// Whether the caller records the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    #[test]
    fn ids_come_back_as_they_were_given() {
        let (mut trace_id, mut parent_id) = ([0; 16], [0; 8]);
        (trace_id[0], trace_id[15], parent_id[7]) = (1, 2, 3);
        let context = TraceContext::new(trace_id, parent_id, true).expect("both name something");
        assert_eq!(context.trace_id(), trace_id);
        assert_eq!(context.parent_id(), parent_id);
        assert!(context.is_sampled());
        let decoded: TraceContext = codec::decode(&codec::encode(&context)).expect("just encoded");
        assert_eq!(decoded, context);
    }

    #[test]
    fn an_id_of_zeros_is_invalid_and_is_not_decoded() {
        assert_eq!(TraceContext::new([0; 16], [1; 8], true), None);
        assert_eq!(TraceContext::new([1; 16], [0; 8], true), None);
        for (trace_id, parent_id) in [(0_u128, 1_u64), (1, 0)] {
            let bytes = codec::encode(&(trace_id, parent_id, true));
            assert!(codec::decode::<TraceContext>(&bytes).is_err());
        }
    }
}
