//! Setting up and running a worker.

use super::callbacks::Callbacks;
use super::handler::Handler;
use super::service::Service;
use super::shutdown::live_until;
use super::{ActionContext, ActionResult, HandlerError};
use crate::client::Client;
use crate::code::ClientCode;
use crate::error::ClientError;
use bytes::Bytes;
use flotilla_api::v1;
use futures::FutureExt;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The maximum concurrency that a server accepts.
const CONCURRENCY_MAX: usize = 10_000;

/// Runs handlers for the tasks of actions.
pub struct Worker {
    client: Client,
    setup: Arc<Setup>,
    callbacks: Callbacks,
}

impl Worker {
    /// Starts to configure a worker in the client's namespace.
    #[must_use]
    pub fn builder(client: Client) -> WorkerBuilder {
        WorkerBuilder {
            client,
            worker_id: format!("{}-{:08x}", host(), rand::random::<u32>()),
            machine_id: host(),
            metadata: Bytes::new(),
            labels: BTreeMap::new(),
            concurrency: 10,
            action_timeout: Duration::from_secs(5 * 60),
            heartbeat_interval: Duration::from_secs(30),
            drain_grace: Duration::from_secs(30),
            handlers: BTreeMap::new(),
            callbacks: Callbacks::default(),
        }
    }

    /// The worker's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.setup.worker_id
    }

    /// Runs until `shutdown` is ready, then drains: takes no more tasks, lets running ones finish,
    /// returns those that still run after the grace (A4a), and deregisters. Also returns `Ok` when
    /// the worker is drained from elsewhere. A lost connection or leader does not end the worker.
    ///
    /// Without held tasks it returns within about a second of the shutdown, whether a node answers
    /// or not; with tasks, at most 6 s after the grace.
    ///
    /// # Errors
    /// What the cluster refuses permanently: the registration, or a worker that another process
    /// with the same id has replaced (`worker_replaced`). Running handlers are dropped.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ClientError> {
        let stop = CancellationToken::new();
        let mut service = Service::new(self.client, self.setup, self.callbacks);
        live_until(shutdown, &stop, service.live(&stop)).await
    }
}

/// Configures a [`Worker`].
pub struct WorkerBuilder {
    client: Client,
    worker_id: String,
    machine_id: String,
    metadata: Bytes,
    labels: BTreeMap<String, String>,
    concurrency: usize,
    action_timeout: Duration,
    heartbeat_interval: Duration,
    drain_grace: Duration,
    handlers: BTreeMap<String, Handler>,
    callbacks: Callbacks,
}

impl WorkerBuilder {
    /// The id that the worker will have.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.worker_id
    }

    /// The worker's id, unique in its namespace. Default: the host name and a random number.
    #[must_use]
    pub fn worker_id(self, worker_id: impl Into<String>) -> Self {
        Self {
            worker_id: worker_id.into(),
            ..self
        }
    }

    /// Groups the workers of one machine. Default: the host name.
    #[must_use]
    pub fn machine_id(self, machine_id: impl Into<String>) -> Self {
        Self {
            machine_id: machine_id.into(),
            ..self
        }
    }

    /// JSON for people to see in the registry. Default: none.
    #[must_use]
    pub fn metadata(self, json: impl Into<Bytes>) -> Self {
        Self {
            metadata: json.into(),
            ..self
        }
    }

    /// A label, matched with those of action runs (A3).
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// The number of concurrent tasks. Default: 10.
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self {
            concurrency,
            ..self
        }
    }

    /// The maximum duration of a handler; then it is dropped and the task fails without retry
    /// (A4a). Default: 5 min.
    #[must_use]
    pub fn action_timeout(self, action_timeout: Duration) -> Self {
        Self {
            action_timeout,
            ..self
        }
    }

    /// The interval of heartbeats. Default: 30 s; after 90 s of silence the cluster considers the
    /// worker unhealthy.
    #[must_use]
    pub fn heartbeat_interval(self, heartbeat_interval: Duration) -> Self {
        Self {
            heartbeat_interval,
            ..self
        }
    }

    /// How long tasks may run after the shutdown began. Default: 30 s.
    #[must_use]
    pub fn drain_grace(self, drain_grace: Duration) -> Self {
        Self {
            drain_grace,
            ..self
        }
    }

    /// Sets the handler of an action. A missing action is registered.
    #[must_use]
    pub fn action<H, F>(mut self, name: impl Into<String>, handler: H) -> Self
    where
        H: Fn(ActionContext) -> F + Send + Sync + 'static,
        F: Future<Output = Result<ActionResult, HandlerError>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |context| handler(context).boxed());
        self.handlers.insert(name.into(), handler);
        self
    }

    /// Called once, when the leader has accepted the worker and tasks may arrive.
    #[must_use]
    pub fn on_ready(mut self, on_ready: impl FnOnce() + Send + 'static) -> Self {
        self.callbacks.on_ready = Some(Box::new(on_ready));
        self
    }

    /// Called once, when the worker begins to drain (A21), because of its shutdown or a request
    /// from elsewhere, with the number of tasks that it holds and waits for.
    #[must_use]
    pub fn on_drain(mut self, on_drain: impl FnOnce(usize) + Send + 'static) -> Self {
        self.callbacks.on_drain = Some(Box::new(on_drain));
        self
    }

    /// Builds the worker.
    ///
    /// # Errors
    /// `Usage` without a handler, or with a concurrency or a heartbeat interval of 0.
    pub fn build(self) -> Result<Worker, ClientError> {
        if self.handlers.is_empty() {
            return Err(invalid("a handler of at least one action, but none is set"));
        }
        if !(1..=CONCURRENCY_MAX).contains(&self.concurrency) {
            let found = self.concurrency;
            return Err(invalid(&format!(
                "a concurrency of 1 to {CONCURRENCY_MAX}, but it is {found}"
            )));
        }
        if self.heartbeat_interval.is_zero() {
            return Err(invalid("an interval between heartbeats, but it is 0"));
        }
        let setup = Setup {
            client: self.client.clone(),
            worker_id: self.worker_id,
            machine_id: self.machine_id,
            metadata: self.metadata,
            labels: self.labels,
            concurrency: self.concurrency,
            action_timeout: self.action_timeout,
            heartbeat_interval: self.heartbeat_interval,
            drain_grace: self.drain_grace,
            handlers: self.handlers,
        };
        Ok(Worker {
            client: self.client,
            setup: Arc::new(setup),
            callbacks: self.callbacks,
        })
    }
}

/// The settings, which do not change while the worker runs.
pub(super) struct Setup {
    pub(super) client: Client,
    pub(super) worker_id: String,
    machine_id: String,
    metadata: Bytes,
    labels: BTreeMap<String, String>,
    pub(super) concurrency: usize,
    pub(super) action_timeout: Duration,
    pub(super) heartbeat_interval: Duration,
    pub(super) drain_grace: Duration,
    pub(super) handlers: BTreeMap<String, Handler>,
}

impl Setup {
    /// The actions that have a handler.
    pub(super) fn actions(&self) -> Vec<String> {
        self.handlers.keys().cloned().collect()
    }

    /// The worker's registration, without its incarnation.
    pub(super) fn record(&self) -> v1::RegisterRequest {
        let process = |name: String| v1::Process {
            name,
            kind: v1::ProcessKind::Action.into(),
        };
        v1::RegisterRequest {
            worker_id: self.worker_id.clone(),
            worker_type: v1::WorkerType::Action.into(),
            max_concurrency: u32::try_from(self.concurrency).unwrap_or(u32::MAX),
            processes: self.actions().into_iter().map(process).collect(),
            labels: self.labels.clone(),
            metadata: self.metadata.clone(),
            machine_id: self.machine_id.clone(),
            ..v1::RegisterRequest::default()
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Setup")
            .field("worker_id", &self.worker_id)
            .finish_non_exhaustive()
    }
}

/// The host name of this machine.
pub(crate) fn host() -> String {
    hostname::get()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_else(|| "host".to_owned())
}

fn invalid(expectation: &str) -> ClientError {
    ClientError::new(ClientCode::WorkerInvalid, format!("expected {expectation}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ClientOptions;

    #[tokio::test]
    async fn the_default_times_are_those_of_the_manual() {
        let options = ClientOptions {
            endpoints: vec!["127.0.0.1:9000".to_owned()],
            ..ClientOptions::default()
        };
        let client = Client::connect(options).expect("an endpoint");
        let builder = Worker::builder(client);
        assert_eq!(builder.heartbeat_interval, Duration::from_secs(30));
        assert_eq!(builder.action_timeout, Duration::from_secs(300));
    }
}
