//! How a stream worker is set up and run.

use super::service::Service;
use super::{RecordError, StreamContext};
use crate::client::Client;
use crate::code::ClientCode;
use crate::error::ClientError;
use crate::worker::{Hooks, host, live_until};
use bytes::Bytes;
use flotilla_api::v1;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Records that one take may give.
const BATCH_SIZE_MAX: u32 = 1_000;
/// More handlers at a time than a server would believe.
const CONCURRENCY_MAX: u32 = 10_000;

/// What runs for each record.
pub(super) type Handler =
    Arc<dyn Fn(StreamContext) -> BoxFuture<'static, Result<(), RecordError>> + Send + Sync>;

/// Runs a handler for each record of a consumer group.
pub struct StreamWorker {
    client: Client,
    setup: Arc<Setup>,
    hooks: Hooks,
}

impl StreamWorker {
    /// Begins to set up a worker for a stream in the client's namespace.
    #[must_use]
    pub fn builder<H, F>(
        client: Client,
        stream: impl Into<String>,
        handler: H,
    ) -> StreamWorkerBuilder
    where
        H: Fn(StreamContext) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), RecordError>> + Send + 'static,
    {
        let worker_id = format!("{}-{:08x}", host(), rand::random::<u32>());
        let setup = Setup {
            stream: stream.into(),
            group: "default".to_owned(),
            consumer: String::new(),
            worker_id,
            machine_id: host(),
            metadata: Bytes::new(),
            concurrency: 10,
            batch_size: 10,
            block: Duration::from_secs(30),
            message_timeout: Duration::from_secs(5 * 60),
            heartbeat_interval: Duration::from_secs(30),
            drain_grace: Duration::from_secs(30),
            handler: Arc::new(move |context| handler(context).boxed()),
        };
        StreamWorkerBuilder {
            client,
            setup,
            hooks: Hooks::default(),
        }
    }

    /// The worker's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.setup.worker_id
    }

    /// Works until `shutdown` is ready, then drains: takes no more records, lets handlers that run
    /// end, gives back what still runs after the grace, leaves the group and deregisters. Also ends,
    /// well, when somebody else drains the worker: then its handlers have all the time that they need
    /// (A21). Lost leaders are no end, and neither is a stream that is not there yet.
    ///
    /// # Errors
    /// What the cluster refuses for good: a bad name, or a newer process with the same worker id
    /// (`worker_replaced`) or the same consumer name (`consumer_replaced`). Handlers that run are
    /// dropped.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ClientError> {
        let stop = CancellationToken::new();
        let service = Service::new(self.client, self.setup);
        live_until(shutdown, &stop, service.live(&stop, self.hooks)).await
    }
}

/// Sets up a [`StreamWorker`].
pub struct StreamWorkerBuilder {
    client: Client,
    setup: Setup,
    hooks: Hooks,
}

/// Makes a method for each setting that takes whatever turns into its type.
macro_rules! converted {
    ($($(#[$doc:meta])* $field:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$type>) -> Self {
            self.setup.$field = $field.into();
            self
        }
    )*};
}

/// Makes a method for each setting that is taken as it is.
macro_rules! plain {
    ($($(#[$doc:meta])* $field:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.setup.$field = $field;
            self
        }
    )*};
}

impl StreamWorkerBuilder {
    converted! {
        /// The consumer group; created with the defaults when it is missing. `default` by default.
        group: String;
        /// The consumer's name within the group. The worker's id by default.
        consumer: String;
        /// The worker's id, unique in its namespace. The host's name and a random number by default.
        worker_id: String;
        /// Groups the workers of one machine. The host's name by default.
        machine_id: String;
        /// JSON for people to see in the registry. None by default.
        metadata: Bytes;
    }

    plain! {
        /// How many handlers run at a time. 10 by default.
        concurrency: u32;
        /// How many records one poll takes at most. 10 by default.
        batch_size: u32;
        /// How long one poll waits for records. 30 s by default, at most 5 min.
        block: Duration;
        /// How long a handler may take; after that it is dropped and its record given back. 5 min by
        /// default.
        message_timeout: Duration;
        /// How often the worker tells that it lives. 30 s by default; after 90 s of silence its
        /// records go to others.
        heartbeat_interval: Duration;
        /// How long handlers may still run after the shutdown began. 30 s by default.
        drain_grace: Duration;
    }

    /// Called once, when the worker has joined its group, or waits for its stream to be created.
    #[must_use]
    pub fn on_ready(mut self, on_ready: impl FnOnce() + Send + 'static) -> Self {
        self.hooks.on_ready = Some(Box::new(on_ready));
        self
    }

    /// Called once, when the worker begins to drain (A21): by its own shutdown, or because somebody
    /// else drained it. It is told how many records the worker has in hand and waits for.
    #[must_use]
    pub fn on_drain(mut self, on_drain: impl FnOnce(usize) + Send + 'static) -> Self {
        self.hooks.on_drain = Some(Box::new(on_drain));
        self
    }

    /// The worker, ready to run.
    ///
    /// # Errors
    /// `Usage` for a number that is out of its range, or a heartbeat interval of 0.
    pub fn build(mut self) -> Result<StreamWorker, ClientError> {
        within("a concurrency", self.setup.concurrency, CONCURRENCY_MAX)?;
        within("a batch size", self.setup.batch_size, BATCH_SIZE_MAX)?;
        if self.setup.heartbeat_interval.is_zero() {
            return Err(invalid("an interval between heartbeats, but it is 0"));
        }
        if self.setup.consumer.is_empty() {
            self.setup.consumer = self.setup.worker_id.clone();
        }
        Ok(StreamWorker {
            client: self.client,
            setup: Arc::new(self.setup),
            hooks: self.hooks,
        })
    }
}

/// What stays the same through a worker's life.
pub(super) struct Setup {
    pub(super) stream: String,
    pub(super) group: String,
    pub(super) consumer: String,
    pub(super) worker_id: String,
    machine_id: String,
    metadata: Bytes,
    pub(super) concurrency: u32,
    pub(super) batch_size: u32,
    pub(super) block: Duration,
    pub(super) message_timeout: Duration,
    pub(super) heartbeat_interval: Duration,
    pub(super) drain_grace: Duration,
    pub(super) handler: Handler,
}

impl Setup {
    /// How the worker registers, but for its incarnation.
    pub(super) fn record(&self) -> v1::RegisterRequest {
        let process = v1::Process {
            name: format!("{}/{}", self.stream, self.group),
            kind: v1::ProcessKind::StreamConsumer.into(),
        };
        v1::RegisterRequest {
            worker_id: self.worker_id.clone(),
            worker_type: v1::WorkerType::Stream.into(),
            max_concurrency: self.concurrency,
            processes: vec![process],
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

fn within(noun: &str, found: u32, max: u32) -> Result<(), ClientError> {
    if (1..=max).contains(&found) {
        return Ok(());
    }
    Err(invalid(&format!("{noun} of 1 to {max}, but it is {found}")))
}

fn invalid(expectation: &str) -> ClientError {
    ClientError::new(ClientCode::WorkerInvalid, format!("expected {expectation}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ClientOptions;

    #[tokio::test]
    async fn the_times_that_are_not_told_are_those_of_the_manual() {
        let options = ClientOptions {
            endpoints: vec!["127.0.0.1:9000".to_owned()],
            ..ClientOptions::default()
        };
        let client = Client::connect(options).expect("an endpoint");
        let setup = StreamWorker::builder(client, "orders", |_| async { Ok(()) }).setup;
        assert_eq!(setup.heartbeat_interval, Duration::from_secs(30));
        assert_eq!(setup.message_timeout, Duration::from_secs(300));
        assert_eq!(setup.block, Duration::from_secs(30));
    }
}
