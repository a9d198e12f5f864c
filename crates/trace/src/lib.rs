//! OpenTelemetry spans, and the W3C trace contexts that connect them (ADR 0019).
//!
//! Nothing here is global: a process that emits spans has an [`Exporter`], and a [`Span`] is a
//! value that is made when its operation has ended. Ids can be [derived](mod@derived) from names,
//! so that nodes and workers agree on them without communication.

pub mod derived;
mod endpoint;
mod exporter;
mod ratio;
mod span;
mod task;
pub mod traceparent;

pub use endpoint::{Endpoint, EndpointInvalid};
pub use exporter::{Emitter, Exporter, ExporterError};
pub use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
pub use opentelemetry::{KeyValue, Value};
pub use ratio::{SampleRatio, SampleRatioInvalid};
pub use span::{Span, SpanEvent};
pub use task::{TaskFacts, TaskSpan};
