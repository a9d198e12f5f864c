//! One client of a workload.

use super::nodes::{Nodes, OneNode};
use crate::history::{Operation, Outcome, Recorder, outcome_of, told};
use flotilla_client::{Client, ClientError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// One client of a workload: its calls are written down.
#[derive(Clone, Debug)]
pub struct Session {
    /// The workload.
    pub workload: &'static str,
    /// The client's number in the workload.
    pub process: u64,
    /// Calls any node, and tries again within its timeout.
    pub client: Client,
    /// Calls one node each, once.
    pub each: Vec<OneNode>,
    /// The nodes, beginning with the one whose turn it is.
    pub nodes: Nodes,
    /// Where operations are written down.
    pub recorder: Arc<Recorder>,
    /// Cancelled when the run is over.
    pub stop: CancellationToken,
}

impl Session {
    /// A client that begins with the node whose turn it is. Must be called within a tokio runtime.
    ///
    /// # Panics
    /// When an endpoint is no address.
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

    /// Makes a call and writes it down. `show` tells what the answer was.
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
            Err(error) => (outcome_of(error), told(error)),
        };
        self.record((name, input), invoked_us, (outcome, output));
        answer
    }

    /// Writes down something that took from `invoked_us` until now and succeeded.
    pub fn note(&self, operation: (&str, Value), invoked_us: u64, output: Value) {
        self.record(operation, invoked_us, (Outcome::Ok, output));
    }

    /// Writes down something that took from `invoked_us` until now, did nothing and failed.
    pub fn note_failure(&self, operation: (&str, Value), invoked_us: u64, error: &ClientError) {
        self.record(operation, invoked_us, (Outcome::Fail, told(error)));
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

    /// Waits for so long, or until the run is over.
    pub async fn rest(&self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stop.cancelled() => {}
        }
    }
}
