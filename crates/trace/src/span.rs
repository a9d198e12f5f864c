//! A span: the record of an operation that took time.

use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::time::SystemTime;

/// The record of an operation that took time, made once it has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its trace and its own id.
    pub context: SpanContext,
    /// The span that it belongs to; `None` begins a trace.
    pub parent: Option<SpanContext>,
    /// The side of the operation that it records.
    pub kind: SpanKind,
    /// The operation's name, with few different values.
    pub name: String,
    /// When it began.
    pub start: SystemTime,
    /// When it ended.
    pub end: SystemTime,
    /// What else is known about the operation.
    pub attributes: Vec<KeyValue>,
    /// The events within it.
    pub events: Vec<SpanEvent>,
    /// The number of events that were dropped as too many.
    pub events_dropped: u32,
    /// How it ended.
    pub status: Status,
}

/// An event within a span.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    /// The event's name.
    pub name: String,
    /// When it happened.
    pub at: SystemTime,
    /// What else is known about the event.
    pub attributes: Vec<KeyValue>,
}

impl Span {
    pub(crate) fn into_data(self, scope: InstrumentationScope) -> SpanData {
        let mut events = SpanEvents::default();
        events.dropped_count = self.events_dropped;
        let told = self.events.into_iter();
        events.events = told
            .map(|event| Event::new(event.name, event.at, event.attributes, 0))
            .collect();
        SpanData {
            parent_span_id: (self.parent.as_ref()).map_or(SpanId::INVALID, SpanContext::span_id),
            parent_span_is_remote: self.parent.is_some_and(|parent| parent.is_remote()),
            span_context: self.context,
            span_kind: self.kind,
            name: self.name.into(),
            start_time: self.start,
            end_time: self.end,
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events,
            links: SpanLinks::default(),
            status: self.status,
            instrumentation_scope: scope,
        }
    }
}
