//! One client of a workload.

use crate::history::{Operation, Outcome, Recorder, outcome_of, told};
use flotilla_client::{Client, ClientError, ClientOptions};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

/// How long a client waits for an answer. Shorter than most faults, so that there are unknown ones.
const TIMEOUT: Duration = Duration::from_secs(2);

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
    pub channels: Vec<Channel>,
    /// The nodes, as `host:port`.
    pub endpoints: Vec<String>,
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
        endpoints: &[String],
        recorder: Arc<Recorder>,
        stop: CancellationToken,
    ) -> Self {
        let turn = usize::try_from(process).unwrap_or(0) % endpoints.len();
        let mut own = endpoints.to_vec();
        own.rotate_left(turn);
        Self {
            workload,
            process,
            client: client(&own),
            channels: endpoints.iter().map(|endpoint| channel(endpoint)).collect(),
            endpoints: own,
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

/// A client of these nodes, for one who does not give up soon.
pub(crate) fn client(endpoints: &[String]) -> Client {
    let options = ClientOptions {
        endpoints: endpoints.to_vec(),
        timeout: TIMEOUT,
        connect_timeout: Duration::from_secs(1),
        ..ClientOptions::default()
    };
    Client::connect(options).expect("the harness knows the nodes' addresses")
}

fn channel(endpoint: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{endpoint}"));
    let endpoint = endpoint.expect("the harness knows the nodes' addresses");
    endpoint
        .connect_timeout(Duration::from_secs(1))
        .connect_lazy()
}
