//! The trace context that tasks carry to their workers, and the spans of tasks that run on this
//! node.

use super::tracer::Tracer;
use crate::context::Context;
use crate::embedded;
use flotilla_api::v1;
use flotilla_engine::{Body, TaskToken, view};
use flotilla_trace::{TaskFacts, TaskSpan, traceparent};
use std::sync::Arc;

/// The header value that a task carries to its worker; `None` if the task
/// belongs to no step, or its trace is not sampled.
pub(crate) fn carried(context: &Context, token: &TaskToken) -> Option<String> {
    let tracer = context.tracer.as_ref()?;
    let gateway = context.node_gateway.of_task(token);
    let visit = gateway.read_here(|reader| view::task_visit(reader, token.action_run));
    // A task whose trace cannot be read is delivered anyway.
    let visit = visit.ok()??;
    let placed = tracer.place(&visit.key, visit.trace.as_ref())?;
    Some(traceparent::format(&placed.context))
}

/// A task that an embedded worker of this node runs.
pub(crate) struct TracedTask {
    tracer: Arc<Tracer>,
    span: TaskSpan,
}

impl TracedTask {
    /// Begins now. `None` if this node sends no spans, or if the task has no trace.
    pub(crate) fn begin(context: &Context, task: &v1::TaskAssignment) -> Option<Self> {
        let tracer = context.tracer.clone()?;
        let span = TaskSpan::begin(TaskFacts {
            traceparent: task.traceparent.as_deref()?,
            task_id: &task.task_id,
            action: &task.action,
            attempt: task.attempt,
            worker: embedded::worker_id(context.node).as_str(),
        })?;
        Some(Self { tracer, span })
    }

    /// Ends the span with the result in `report`.
    pub(crate) fn end(self, report: &Body) {
        let ended = match report {
            Body::CompleteTask(completed) => Ok(completed.outcome.as_str()),
            Body::FailTask(failed) => Err(failed.message.clone()),
            other => Err(format!("{:?}", other.kind())),
        };
        self.tracer.export(self.span.end(ended));
    }
}
