//! The log writer: the one thread that writes the log and makes all queued writes durable with one
//! fsync.
//!
//! Votes, entries, truncations and purges pass through one queue, so the device sees them in
//! openraft's order. openraft treats a flush callback as a watermark, so the callbacks of a batch
//! are released in order, after its fsync. After a failure nothing more is written: what the device
//! holds is unknown, and openraft ends this node on the first failed callback.

use crate::environment::Observer;
use crate::execution::{BlockingPool, JobKind};
use crate::log::device::{DeviceError, Durability, LogDevice, Operation};
use crate::log::progress::Progress;
use crate::log::window::Window;
use crate::raft::type_config::TypeConfig;
use openraft::storage::IOFlushed;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// The capacity of the queue; each job holds at most one append of openraft.
const QUEUE_MAX: usize = 1_024;
/// The maximum size of the writes under one fsync, so that the first of a long queue does not wait
/// too long.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Notified when a job is durable.
pub(crate) enum Waiter {
    /// openraft's callback of an append.
    Flushed(IOFlushed<TypeConfig>),
    /// A waiting call.
    Call(oneshot::Sender<io::Result<()>>),
    /// No waiter: the job need not be durable.
    Nobody,
}

/// One write.
pub(crate) struct Job {
    pub(crate) operations: Vec<Operation>,
    pub(crate) waiter: Waiter,
}

/// How much was written since the start.
#[derive(Debug, Default)]
pub(crate) struct WriterCounters {
    pub(crate) syncs: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// What the writer thread works with.
pub(crate) struct Writer {
    pub(crate) device: Arc<dyn LogDevice>,
    pub(crate) window: Arc<RwLock<Window>>,
    pub(crate) counters: Arc<WriterCounters>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) observer: Arc<dyn Observer>,
}

impl Writer {
    /// Starts the writer, which ends when the returned sender and its clones are gone.
    ///
    /// # Errors
    /// [`io::Error`] if the system cannot create a thread.
    pub(crate) fn spawn(
        self,
        node_id: u64,
        blocking_pool: &BlockingPool,
    ) -> io::Result<mpsc::Sender<Job>> {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let name = format!("log-writer-{node_id}");
        let mut failure: Option<String> = None;
        blocking_pool.serve(name, JobKind::LogWrite, receiver, move |first, queue| {
            self.write_together(first, queue, &mut failure);
        })?;
        Ok(sender)
    }

    /// Writes a job and all queued ones behind it, unless an earlier write has failed.
    fn write_together(
        &self,
        first: Job,
        queue: &mut mpsc::Receiver<Job>,
        failure: &mut Option<String>,
    ) {
        let mut batch = Batch::default();
        batch.add(first);
        while batch.bytes < BATCH_BYTES_MAX
            && let Ok(job) = queue.try_recv()
        {
            batch.add(job);
        }
        if failure.is_none() {
            *failure = self.write(&batch).err().map(|error| error.to_string());
        }
        self.progress.end(batch.waiters.len() as u64);
        batch.release(failure.as_deref());
    }

    fn write(&self, batch: &Batch) -> Result<(), DeviceError> {
        let start = Instant::now();
        self.device.write(&batch.operations, batch.durability())?;
        if batch.durability() == Durability::Synced {
            self.counters.syncs.fetch_add(1, Ordering::Relaxed);
            self.observer.log_synced(start.elapsed());
        }
        self.counters
            .bytes
            .fetch_add(batch.bytes as u64, Ordering::Relaxed);
        if let Some(flushed) = batch.index_last {
            self.window
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .evict(flushed);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Batch {
    operations: Vec<Operation>,
    waiters: Vec<Waiter>,
    bytes: usize,
    /// The last index that is on the device once the batch is.
    index_last: Option<u64>,
}

impl Batch {
    fn add(&mut self, job: Job) {
        for operation in job.operations {
            match &operation {
                Operation::Put { index, record } => {
                    self.bytes += record.len();
                    self.index_last = Some(*index);
                }
                Operation::Truncate { from } => {
                    self.index_last = self.index_last.and_then(|_| from.checked_sub(1));
                }
                Operation::Purge { .. } | Operation::Set { .. } => {}
            }
            self.operations.push(operation);
        }
        self.waiters.push(job.waiter);
    }

    fn durability(&self) -> Durability {
        let is_awaited = self
            .waiters
            .iter()
            .any(|waiter| !matches!(waiter, Waiter::Nobody));
        if is_awaited {
            Durability::Synced
        } else {
            Durability::Deferred
        }
    }

    fn release(self, failure: Option<&str>) {
        for waiter in self.waiters {
            let result = failure.map_or(Ok(()), |text| Err(io::Error::other(text.to_owned())));
            match waiter {
                Waiter::Flushed(callback) => callback.io_completed(result),
                // A caller that is gone does not need the result.
                Waiter::Call(sender) => drop(sender.send(result)),
                Waiter::Nobody => {}
            }
        }
    }
}
