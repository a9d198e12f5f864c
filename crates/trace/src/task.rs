//! The span of a task: one attempt of an action run, as the worker saw it.

use crate::derived;
use crate::span::Span;
use crate::traceparent;
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanKind, Status, TraceState};
use std::time::SystemTime;

/// What a worker knows about a task.
#[derive(Clone, Copy, Debug)]
pub struct TaskFacts<'a> {
    /// The span that it belongs to, as the task carried it.
    pub traceparent: &'a str,
    /// Unique to the attempt.
    pub task_id: &'a str,
    /// The action's name.
    pub action: &'a str,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The worker's id.
    pub worker: &'a str,
}

/// A task in progress. It becomes a span when it [has ended](Self::end).
#[derive(Clone, Debug)]
pub struct TaskSpan {
    context: SpanContext,
    parent: SpanContext,
    name: String,
    attributes: Vec<KeyValue>,
    start: SystemTime,
}

impl TaskSpan {
    /// Begins now. `None` for a task without a trace.
    #[must_use]
    pub fn begin(facts: TaskFacts<'_>) -> Option<Self> {
        let parent = traceparent::parse(facts.traceparent)?;
        let name = format!("{}/{}", facts.traceparent, facts.task_id);
        let context = SpanContext::new(
            parent.trace_id(),
            derived::span_id(name.as_bytes()),
            parent.trace_flags(),
            false,
            TraceState::NONE,
        );
        let attributes = vec![
            KeyValue::new("flotilla.action", facts.action.to_owned()),
            KeyValue::new("flotilla.task_id", facts.task_id.to_owned()),
            KeyValue::new("flotilla.attempt", i64::from(facts.attempt)),
            KeyValue::new("flotilla.worker_id", facts.worker.to_owned()),
        ];
        Some(Self {
            context,
            parent,
            name: format!("task {}", facts.action),
            attributes,
            start: SystemTime::now(),
        })
    }

    /// The header value for what is done on behalf of the task.
    #[must_use]
    pub fn traceparent(&self) -> String {
        traceparent::format(&self.context)
    }

    /// Ends the task now, with this outcome or, as an error, for this reason.
    #[must_use]
    pub fn end(mut self, ended: Result<&str, String>) -> Span {
        let status = match ended {
            Ok(outcome) => {
                let outcome = KeyValue::new("flotilla.outcome", outcome.to_owned());
                self.attributes.push(outcome);
                Status::Ok
            }
            Err(reason) => Status::error(reason),
        };
        Span {
            context: self.context,
            parent: Some(self.parent),
            kind: SpanKind::Consumer,
            name: self.name,
            start: self.start,
            end: SystemTime::now(),
            attributes: self.attributes,
            events: Vec::new(),
            events_dropped: 0,
            status,
        }
    }
}
