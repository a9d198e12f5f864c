//! One client of a workload.

use super::nodes::{Nodes, OneNode};
use crate::history::{Operation, Outcome, Recorder, describe_error, outcome_of};
use flotilla_client::{Client, ClientError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// One client of a workload: its calls are recorded.
#[derive(Clone, Debug)]
pub struct Session {
    /// The workload.
    pub workload: &'static str,
    /// The client's number in the workload.
    pub process: u64,
    /// Calls any node, and retries within its timeout.
    pub client: Client,
    /// One client per node, without retries.
    pub each: Vec<OneNode>,
    /// The nodes, starting with this client's.
    pub nodes: Nodes,
    /// Where operations are recorded.
    pub recorder: Arc<Recorder>,
    /// Cancelled when the run is over.
    pub stop: CancellationToken,
}

impl Session {
    /// A client that starts with a node by its number. Must be called within a tokio runtime.
    ///
    /// # Panics
    /// When an endpoint is not an address.
    #[must_use]
    pub fn new(
        (workload, process): (&'static str, u64),
        nodes: &Nodes,
        recorder: Arc<Recorder>,
        stop: CancellationToken,
    ) -> Self {
        let own = nodes.turned(usize::try_from(process).unwrap_or(0));
        Self {
            workload,
            process,
            client: own.client(),
            each: nodes.each(),
            nodes: own,
            recorder,
            stop,
        }
    }

    /// Makes a call and records it. `show` formats the response.
    pub async fn call<T>(
        &self,
        (name, input): (&str, Value),
        call: impl Future<Output = Result<T, ClientError>>,
        show: impl FnOnce(&T) -> Value,
    ) -> Result<T, ClientError> {
        let invoked_us = self.recorder.now();
        let answer = call.await;
        let (outcome, output) = match &answer {
            Ok(answer) => (Outcome::Ok, show(answer)),
            Err(error) => (outcome_of(error), describe_error(error)),
        };
        self.record((name, input), invoked_us, (outcome, output));
        answer
    }

    /// Records an operation that took from `invoked_us` until now and succeeded.
    pub fn note(&self, operation: (&str, Value), invoked_us: u64, output: Value) {
        self.record(operation, invoked_us, (Outcome::Ok, output));
    }

    /// Records an operation that took from `invoked_us` until now, had no effect and failed.
    pub fn note_failure(&self, operation: (&str, Value), invoked_us: u64, error: &ClientError) {
        self.record(
            operation,
            invoked_us,
            (Outcome::Fail, describe_error(error)),
        );
    }

    fn record(
        &self,
        (name, input): (&str, Value),
        invoked_us: u64,
        (outcome, output): (Outcome, Value),
    ) {
        self.recorder.record(Operation {
            workload: self.workload.to_owned(),
            process: self.process,
            name: name.to_owned(),
            input,
            invoked_us,
            returned_us: self.recorder.now(),
            outcome,
            output,
        });
    }

    /// Waits for this long, or until the run is over.
    pub async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stop.cancelled() => {}
        }
    }
}
