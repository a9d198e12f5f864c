//! `flo worker exec --stream`: a program that consumes the records of a stream.

use super::program::Program;
use super::tally::Tally;
use super::{ending, record, say_ready};
use crate::failure::Failure;
use crate::session::Session;
use crate::shutdown::Shutdown;
use clap::Args;
use flotilla_client::{StreamContext, StreamWorker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The arguments of a worker that runs tasks of actions, where one of a stream has nothing to say.
const ACTIONS: [&str; 2] = ["name", "actions"];

/// What a program consumes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Records of a stream")]
pub(super) struct Consumption {
    /// Run the program for each record of this stream instead
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

    /// The consumer group; created with the defaults when it is missing
    #[arg(
        long,
        value_name = "GROUP",
        conflicts_with_all = ACTIONS,
        default_value = "default"
    )]
    group: String,

    /// The consumer's name within the group [default: the worker's id]
    #[arg(long, value_name = "NAME", conflicts_with_all = ACTIONS)]
    consumer: Option<String>,

    /// How many records one poll takes at most
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ACTIONS,
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    batch_size: u32,

    /// How long one poll waits for records
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ACTIONS,
        default_value_t = 30_000,
        value_parser = clap::value_parser!(u64).range(..=300_000)
    )]
    block_ms: u64,

    /// How long a program may run for a record; then it is killed and the record given back
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ACTIONS,
        default_value_t = 300_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    message_timeout_ms: u64,
}

/// What every command worker is told.
pub(super) struct Employment {
    /// How many programs run at a time.
    pub(super) concurrency: usize,
    /// The worker's id, if it is not left to chance.
    pub(super) worker_id: Option<String>,
    /// How long programs may still run after the worker was told to stop.
    pub(super) drain_timeout: Duration,
}

impl Consumption {
    /// Whether a stream is to be consumed, rather than tasks of actions.
    pub(super) fn is_wanted(&self) -> bool {
        self.stream.is_some()
    }

    /// Runs the program for each record until the worker is told to stop, or the program is gone: each
    /// attempt at a record would fail, until all of them lay in the dead-letter stream.
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
        let tally = Tally::new("record", employment.drain_timeout);
        let (counting, missed) = (tally.clone(), absence.clone());
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
        let (draining, output) = (tally.clone(), session.output);
        let concurrency = u32::try_from(employment.concurrency).unwrap_or(u32::MAX);
        let mut builder = StreamWorker::builder(session.untraced_client()?, stream, handler)
            .group(self.group)
            .concurrency(concurrency)
            .batch_size(self.batch_size)
            .block(Duration::from_millis(self.block_ms))
            .drain_grace(employment.drain_timeout)
            .message_timeout(Duration::from_millis(self.message_timeout_ms))
            .on_ready(say_ready)
            .on_drain(move |in_hand| output.note(&draining.start_drain(in_hand)));
        if let Some(worker_id) = employment.worker_id {
            builder = builder.worker_id(worker_id);
        }
        if let Some(consumer) = self.consumer {
            builder = builder.consumer(consumer);
        }
        let worker = builder.build()?;
        let work = |drained| worker.run(ending::told(drained));
        let asked = async || shutdown.requested().await;
        let concluded = ending::run(asked, &tally, absence.told(), work).await;
        absence.refuse()?;
        if let Some(conclusion) = concluded? {
            output.note(&conclusion);
        }
        Ok(())
    }
}

/// That the program is there no more, once a record has shown it.
#[derive(Clone, Debug, Default)]
struct Absence {
    // A std mutex and not tokio's because it is never held across an await.
    failure: Arc<Mutex<Option<Failure>>>,
    is_told: Arc<Notify>,
}

impl Absence {
    fn tell(&self, failure: Failure) {
        *self.failure() = Some(failure);
        self.is_told.notify_one();
    }

    async fn told(&self) {
        self.is_told.notified().await;
    }

    fn refuse(&self) -> Result<(), Failure> {
        self.failure().take().map_or(Ok(()), Err)
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
