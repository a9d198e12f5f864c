//! The spans of a worker's tasks.

use super::task::Task;
use crate::code::Code;
use crate::failure::Failure;
use flotilla_client::{ActionResult, HandlerError};
use flotilla_trace::{Emitter, Endpoint, Exporter, TaskFacts, TaskSpan};
use std::sync::Arc;

/// Where a worker's spans go; nowhere, when it was not told.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces(Option<Arc<Destination>>);

#[derive(Debug)]
struct Destination {
    exporter: Exporter,
    worker: String,
}

impl Traces {
    /// The spans of `worker` to `endpoint`, when there is one.
    ///
    /// # Errors
    /// `config_invalid` when nothing can be sent there.
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

    /// A task begins now. None when it is not traced, by the cluster or by this worker.
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

    /// A task has ended.
    pub(super) fn end(&self, span: TaskSpan, result: &Result<ActionResult, HandlerError>) {
        let ended = match result {
            Ok(result) => Ok(result.outcome().unwrap_or("accepted")),
            Err(error) => Err(error.message.clone()),
        };
        if let Some(destination) = &self.0 {
            destination.exporter.export(span.end(ended));
        }
    }

    /// Sends what is left; waits for a moment.
    pub(super) async fn stop(self) {
        if let Some(destination) = self.0 {
            // What could not be sent is lost: it is said in the log.
            drop(tokio::task::spawn_blocking(move || destination.exporter.stop()).await);
        }
    }
}
