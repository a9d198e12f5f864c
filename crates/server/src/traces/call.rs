//! The span of a call, for callers that trace.

use super::context::own;
use super::tracer::Tracer;
use axum::http::HeaderMap;
use flotilla_engine::TraceContext;
use flotilla_trace::{KeyValue, Span, SpanContext, SpanId, SpanKind, Status, traceparent};
use std::sync::Arc;
use std::time::SystemTime;
use tonic::{Code, Request};

/// A call in progress of a caller that traces.
pub(crate) struct TracedCall {
    tracer: Arc<Tracer>,
    context: SpanContext,
    parent: SpanContext,
    method: String,
    start: SystemTime,
}

/// The span of the call that carried a request: an extension of the request.
#[derive(Clone, Debug)]
pub(crate) struct CallTrace(SpanContext);

impl CallTrace {
    /// What a run started by the request records.
    pub(crate) fn of<RequestBody>(request: &Request<RequestBody>) -> Option<TraceContext> {
        let Self(context) = request.extensions().get()?;
        super::context::to_engine(context)
    }
}

impl TracedCall {
    /// Begins now. `None` if this node sends no spans, or if the caller does not trace.
    pub(crate) fn begin(
        tracer: Option<&Arc<Tracer>>,
        method: &str,
        headers: &HeaderMap,
    ) -> Option<Self> {
        let tracer = tracer?.clone();
        let header = headers.get(traceparent::HEADER)?.to_str().ok()?;
        let parent = traceparent::parse(header)?;
        let span_id = SpanId::from(rand::random::<u64>().max(1));
        Some(Self {
            tracer,
            context: own(parent.trace_id(), span_id, parent.is_sampled()),
            parent,
            method: method.trim_start_matches('/').to_owned(),
            start: SystemTime::now(),
        })
    }

    /// The context for the services that handle the call.
    pub(crate) fn trace(&self) -> CallTrace {
        CallTrace(self.context.clone())
    }

    /// Ends the span when the response begins.
    pub(crate) fn record_response(self, code: Code) {
        let status = match code {
            Code::Ok => Status::Ok,
            code => Status::error(code.description()),
        };
        let number = i64::from(i32::from(code));
        self.tracer.export(Span {
            context: self.context,
            parent: Some(self.parent),
            kind: SpanKind::Server,
            name: self.method,
            start: self.start,
            end: SystemTime::now(),
            attributes: vec![
                KeyValue::new("rpc.system.name", "grpc"),
                KeyValue::new("rpc.response.status_code", number),
            ],
            events: Vec::new(),
            events_dropped: 0,
            status,
        });
    }
}
