//! The spans of a worker's tasks.

use super::task::Task;
use crate::code::Code;
use crate::failure::Failure;
use flotilla_client::{ActionResult, HandlerError};
use flotilla_trace::{Emitter, Endpoint, Exporter, TaskFacts, TaskSpan};
use std::sync::Arc;

/// The destination of the worker's spans; `None` without one.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces(Option<Arc<Destination>>);

#[derive(Debug)]
struct Destination {
    exporter: Exporter,
    worker: String,
}

impl Traces {
    /// Exports the spans of `worker` to `endpoint`, if given.
    ///
    /// # Errors
    /// `config_invalid` if the exporter cannot be created.
    pub(super) fn start(endpoint: Option<&Endpoint>, worker: &str) -> Result<Self, Failure> {
        let Some(endpoint) = endpoint else {
            return Ok(Self::default());
        };
        let emitter = Emitter {
            service: "flotilla-worker".to_owned(),
            instance: worker.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let exporter = Exporter::start(endpoint, emitter)
            .map_err(|error| Failure::new(Code::ConfigInvalid, error.to_string()))?;
        let worker = worker.to_owned();
        Ok(Self(Some(Arc::new(Destination { exporter, worker }))))
    }

    /// Begins the span of a task; `None` if the cluster or this worker does not trace it.
    pub(super) fn begin(&self, task: &Task) -> Option<TaskSpan> {
        let destination = self.0.as_ref()?;
        TaskSpan::begin(TaskFacts {
            traceparent: task.traceparent.as_deref()?,
            task_id: &task.task_id,
            action: &task.action,
            attempt: task.attempt,
            worker: &destination.worker,
        })
    }

    /// Ends the span of a task.
    pub(super) fn end(&self, span: TaskSpan, result: &Result<ActionResult, HandlerError>) {
        let ended = match result {
            Ok(result) => Ok(result.outcome().unwrap_or("accepted")),
            Err(error) => Err(error.message.clone()),
        };
        if let Some(destination) = &self.0 {
            destination.exporter.export(span.end(ended));
        }
    }

    /// Exports the remaining spans, for a limited time.
    pub(super) async fn stop(self) {
        if let Some(destination) = self.0 {
            // Spans that could not be exported are lost, which the exporter logs.
            drop(tokio::task::spawn_blocking(move || destination.exporter.stop()).await);
        }
    }
}
