//! One client of a workload.

use super::nodes::{Nodes, OneNode};
use crate::history::{Moment, Operation, Outcome, Recorder, describe_error, outcome_of};
use flotilla_client::{ApiToken, Client, ClientError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Which client of which workload.
#[derive(Clone, Copy, Debug)]
pub struct ClientId {
    /// The workload.
    pub workload: &'static str,
    /// The client's number in the workload.
    pub process: u64,
}

/// An operation that was begun, before its outcome.
#[derive(Clone, Debug)]
pub struct Invocation<'a> {
    /// The operation's name.
    pub name: &'a str,
    /// Its input.
    pub input: Value,
    /// When it was begun.
    pub invoked_us: Moment,
}

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
        client: ClientId,
        nodes: &Nodes,
        recorder: Arc<Recorder>,
        stop: CancellationToken,
    ) -> Self {
        let ClientId { workload, process } = client;
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

    /// The same client with an API token, starting with the node of this number. Must be called within a tokio runtime.
    ///
    /// # Panics
    /// When an endpoint is not an address.
    #[must_use]
    pub fn with_token(&self, token: ApiToken, node: usize) -> Self {
        let nodes = self.nodes.turned(node).with_token(token);
        Self {
            client: nodes.client(),
            nodes,
            ..self.clone()
        }
    }

    /// Makes a call and records it. `show` formats the response.
    pub async fn call<T>(
        &self,
        name: &str,
        input: Value,
        call: impl Future<Output = Result<T, ClientError>>,
        show: impl FnOnce(&T) -> Value,
    ) -> Result<T, ClientError> {
        let invocation = Invocation {
            name,
            input,
            invoked_us: self.recorder.now(),
        };
        let answer = call.await;
        let (outcome, output) = match &answer {
            Ok(answer) => (Outcome::Ok, show(answer)),
            Err(error) => (outcome_of(error), describe_error(error)),
        };
        self.record(invocation, outcome, output);
        answer
    }

    /// Records an operation that has ended now and succeeded.
    pub fn note(&self, invocation: Invocation<'_>, output: Value) {
        self.record(invocation, Outcome::Ok, output);
    }

    /// Records an operation that has ended now, had no effect and failed.
    pub fn note_failure(&self, invocation: Invocation<'_>, error: &ClientError) {
        self.record(invocation, Outcome::Fail, describe_error(error));
    }

    fn record(&self, invocation: Invocation<'_>, outcome: Outcome, output: Value) {
        self.recorder.record(Operation {
            workload: self.workload.to_owned(),
            process: self.process,
            name: invocation.name.to_owned(),
            input: invocation.input,
            invoked_us: invocation.invoked_us,
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
