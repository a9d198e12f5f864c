//! Setting up and running a stream worker.

use super::service::Service;
use super::{RecordError, StreamContext};
use crate::client::Client;
use crate::code::ClientCode;
use crate::error::ClientError;
use crate::worker::{Callbacks, host, live_until};
use bytes::Bytes;
use flotilla_api::v1;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The maximum number of records per take.
const BATCH_SIZE_MAX: u32 = 1_000;
/// The maximum concurrency that a server accepts.
const CONCURRENCY_MAX: u32 = 10_000;

/// The handler of records.
pub(super) type Handler =
    Arc<dyn Fn(StreamContext) -> BoxFuture<'static, Result<(), RecordError>> + Send + Sync>;

/// Runs a handler for each record of a consumer group.
pub struct StreamWorker {
    client: Client,
    setup: Arc<Setup>,
    callbacks: Callbacks,
}

impl StreamWorker {
    /// Starts to configure a worker for a stream in the client's namespace.
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
            callbacks: Callbacks::default(),
        }
    }

    /// The worker's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.setup.worker_id
    }

    /// Runs until `shutdown` is ready, then drains: takes no more records, lets running handlers
    /// finish, returns the records of those that still run after the grace, leaves the group and
    /// deregisters. Also returns `Ok` when the worker is drained from elsewhere: its handlers then
    /// have unlimited time (A21). A lost leader or a missing stream does not end the worker.
    ///
    /// # Errors
    /// What the cluster refuses permanently: an invalid name, or a newer process with the same
    /// worker id (`worker_replaced`) or the same consumer name (`consumer_replaced`). Running
    /// handlers are dropped.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ClientError> {
        let stop = CancellationToken::new();
        let service = Service::new(self.client, self.setup);
        live_until(shutdown, &stop, service.live(&stop, self.callbacks)).await
    }
}

/// Configures a [`StreamWorker`].
pub struct StreamWorkerBuilder {
    client: Client,
    setup: Setup,
    callbacks: Callbacks,
}

/// Generates a method for each setting that accepts any type that converts into its type.
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

/// Generates a method for each setting that is passed unchanged.
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
        /// The consumer group; created with the defaults if missing. Default: `default`.
        group: String;
        /// The consumer's name within the group. Default: the worker's id.
        consumer: String;
        /// The worker's id, unique in its namespace. Default: the host name and a random number.
        worker_id: String;
        /// Groups the workers of one machine. Default: the host name.
        machine_id: String;
        /// JSON for people to see in the registry. Default: none.
        metadata: Bytes;
    }

    plain! {
        /// The number of concurrent handlers. Default: 10.
        concurrency: u32;
        /// The maximum number of records per poll. Default: 10.
        batch_size: u32;
        /// How long one poll waits for records. Default: 30 s; at most 5 min.
        block: Duration;
        /// The maximum duration of a handler; then it is dropped and its record returned. Default:
        /// 5 min.
        message_timeout: Duration;
        /// The interval of heartbeats. Default: 30 s; after 90 s of silence the worker's records go
        /// to others.
        heartbeat_interval: Duration;
        /// How long handlers may run after the shutdown began. Default: 30 s.
        drain_grace: Duration;
    }

    /// Called once, when the worker has joined its group or waits for its stream to be created.
    #[must_use]
    pub fn on_ready(mut self, on_ready: impl FnOnce() + Send + 'static) -> Self {
        self.callbacks.on_ready = Some(Box::new(on_ready));
        self
    }

    /// Called once, when the worker begins to drain (A21), because of its shutdown or a request
    /// from elsewhere, with the number of records that it holds and waits for.
    #[must_use]
    pub fn on_drain(mut self, on_drain: impl FnOnce(usize) + Send + 'static) -> Self {
        self.callbacks.on_drain = Some(Box::new(on_drain));
        self
    }

    /// Builds the worker.
    ///
    /// # Errors
    /// `Usage` for a number out of range, or a heartbeat interval of 0.
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
            callbacks: self.callbacks,
        })
    }
}

/// The settings, which do not change while the worker runs.
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
    /// The worker's registration, without its incarnation.
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
    async fn the_default_times_are_those_of_the_manual() {
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
