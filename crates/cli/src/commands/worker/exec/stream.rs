//! `flo worker exec --stream`: a program that consumes the records of a stream.

use super::program::Program;
use super::task_counter::TaskCounter;
use super::{ending, record, say_ready};
use crate::failure::Failure;
use crate::session::Session;
use crate::shutdown::Shutdown;
use clap::Args;
use flotilla_client::{StreamContext, StreamWorker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The arguments for tasks of actions, which exclude those for streams.
const ACTIONS: [&str; 2] = ["name", "actions"];

/// The stream options.
#[derive(Debug, Args)]
#[command(next_help_heading = "Records of a stream")]
pub(super) struct StreamFlags {
    /// Stream to consume; the program runs for each record
    #[arg(
        long,
        value_name = "STREAM",
        requires = "program",
        conflicts_with_all = [
            "name",
            "actions",
            "labels",
            "action_timeout_ms",
            "timeout_ms",
            "max_retries",
            "retry_delay_ms"
        ]
    )]
    stream: Option<String>,

    /// Consumer group; created with the defaults if missing
    #[arg(
        long,
        value_name = "GROUP",
        conflicts_with_all = ACTIONS,
        default_value = "default"
    )]
    group: String,

    /// Name of the consumer within the group [default: the worker's id]
    #[arg(long, value_name = "NAME", conflicts_with_all = ACTIONS)]
    consumer: Option<String>,

    /// Maximum number of records per poll
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ACTIONS,
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    batch_size: u32,

    /// How long one poll waits for records, in milliseconds
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ACTIONS,
        default_value_t = 30_000,
        value_parser = clap::value_parser!(u64).range(..=300_000)
    )]
    block_ms: u64,

    /// Maximum run time of a program per record, in milliseconds; then it is killed and the record
    /// returned
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ACTIONS,
        default_value_t = 300_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    message_timeout_ms: u64,
}

/// The settings that every command worker has.
pub(super) struct Employment {
    /// The number of programs that run at the same time.
    pub(super) concurrency: usize,
    /// The worker's id; `None` for a random one.
    pub(super) worker_id: Option<String>,
    /// The drain grace: how long programs may run after a stop request.
    pub(super) drain_timeout: Duration,
}

impl StreamFlags {
    /// Whether the worker consumes a stream instead of running tasks.
    pub(super) fn is_wanted(&self) -> bool {
        self.stream.is_some()
    }

    /// Runs the program for each record until the worker is stopped, or until the program no longer
    /// exists. Without the program every delivery would fail, until all records were in the
    /// dead-letter stream.
    pub(super) async fn run(
        self,
        program: Program,
        employment: Employment,
        session: &Session,
    ) -> Result<(), Failure> {
        let mut shutdown = Shutdown::new()?;
        let stream = self.stream.unwrap_or_default();
        let purpose: Arc<str> = format!("consume stream {stream:?}").into();
        program.check(&purpose).await?;
        let program = Arc::new(program);
        let absence = Absence::default();
        let task_counter = TaskCounter::new("record", employment.drain_timeout);
        let (counting, missed) = (task_counter.clone(), absence.clone());
        let handler = move |context: StreamContext| {
            let (program, purpose, missed) = (program.clone(), purpose.clone(), missed.clone());
            let running = counting.begin(context.stream_id().to_owned());
            async move {
                let result = record::run(&program, &context).await;
                if result.is_err()
                    && let Err(failure) = program.check(&purpose).await
                {
                    missed.tell(failure);
                }
                running.end();
                result
            }
        };
        let (draining, output) = (task_counter.clone(), session.output);
        let concurrency = u32::try_from(employment.concurrency).unwrap_or(u32::MAX);
        let mut builder = StreamWorker::builder(session.untraced_client()?, stream, handler)
            .group(self.group)
            .concurrency(concurrency)
            .batch_size(self.batch_size)
            .block(Duration::from_millis(self.block_ms))
            .drain_grace(employment.drain_timeout)
            .message_timeout(Duration::from_millis(self.message_timeout_ms))
            .on_ready(say_ready)
            .on_drain(move |in_flight| output.note(&draining.start_drain(in_flight)));
        if let Some(worker_id) = employment.worker_id {
            builder = builder.worker_id(worker_id);
        }
        if let Some(consumer) = self.consumer {
            builder = builder.consumer(consumer);
        }
        let worker = builder.build()?;
        let work = |drained| worker.run(ending::drain_requested(drained));
        let stop_requested = async || shutdown.requested().await;
        let concluded = ending::run(stop_requested, &task_counter, absence.noticed(), work).await;
        absence.refuse()?;
        if let Some(conclusion) = concluded? {
            output.note(&conclusion);
        }
        Ok(())
    }
}

/// Set when a record finds that the program no longer exists.
#[derive(Clone, Debug, Default)]
struct Absence {
    // A std mutex and not tokio's because it is never held across an await.
    failure: Arc<Mutex<Option<Failure>>>,
    notify: Arc<Notify>,
}

impl Absence {
    fn tell(&self, failure: Failure) {
        *self.failure() = Some(failure);
        self.notify.notify_one();
    }

    async fn noticed(&self) {
        self.notify.notified().await;
    }

    fn refuse(&self) -> Result<(), Failure> {
        self.failure().take().map_or(Ok(()), Err)
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
