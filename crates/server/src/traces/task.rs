//! What tasks carry of their step's span, and the spans of those that run on this node.

use super::tracer::Tracer;
use crate::context::Context;
use crate::embedded;
use flotilla_api::v1;
use flotilla_engine::ids::ActionRunNumber;
use flotilla_engine::{Body, view};
use flotilla_trace::{TaskFacts, TaskSpan, traceparent};
use std::sync::Arc;

/// The header's value that a task of this action run carries to its worker; none for a task of no step, and when its
/// trace is not kept.
pub(crate) fn carried(context: &Context, action_run: ActionRunNumber) -> Option<String> {
    let tracer = context.tracer.as_ref()?;
    let gateway = &context.gateway;
    let visit = gateway.read_here(|reader| view::task_visit(reader, action_run));
    // A task that cannot be looked up is delivered all the same.
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
    /// Begins now. None when this node sends no spans, and for a task of no trace.
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

    /// The task has ended with what `report` says.
    pub(crate) fn end(self, report: &Body) {
        let ended = match report {
            Body::CompleteTask(completed) => Ok(completed.outcome.as_str()),
            Body::FailTask(failed) => Err(failed.message.clone()),
            other => Err(format!("{:?}", other.kind())),
        };
        self.tracer.export(self.span.end(ended));
    }
}
