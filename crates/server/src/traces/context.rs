//! Converts trace contexts between the engine's form and OpenTelemetry's.

use flotilla_engine::TraceContext;
use flotilla_trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// What a run records of the span in which it was started.
pub(super) fn to_engine(context: &SpanContext) -> Option<TraceContext> {
    let (trace_id, parent_id) = (context.trace_id(), context.span_id());
    TraceContext::new(
        trace_id.to_bytes(),
        parent_id.to_bytes(),
        context.is_sampled(),
    )
}

/// The span in which a run was started.
pub(super) fn of_engine(trace: &TraceContext) -> SpanContext {
    SpanContext::new(
        TraceId::from_bytes(trace.trace_id()),
        SpanId::from_bytes(trace.parent_id()),
        flags(trace.is_sampled()),
        true,
        TraceState::NONE,
    )
}

/// A span of this node.
pub(super) fn own(trace_id: TraceId, span_id: SpanId, is_sampled: bool) -> SpanContext {
    SpanContext::new(
        trace_id,
        span_id,
        flags(is_sampled),
        false,
        TraceState::NONE,
    )
}

fn flags(is_sampled: bool) -> TraceFlags {
    TraceFlags::NOT_SAMPLED.with_sampled(is_sampled)
}
