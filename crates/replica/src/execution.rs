//! Where a replica runs: on its own threads or, in a simulation, on its caller's runtime.
//!
//! A real replica has a runtime for consensus, a thread that writes the log and one that applies
//! it, so that load elsewhere cannot starve its heartbeats. A simulation runs many replicas on one
//! thread and decides what comes first; there the same work runs as tasks, and its duration is
//! simulated.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Where a replica runs.
#[derive(Clone, Default)]
pub enum Execution {
    /// On its own runtime and threads.
    #[default]
    OwnThreads,
    /// As tasks on the runtime that starts it; they end with it. A blocking job waits for the
    /// duration that the pace gives it, and then runs without a pause.
    CallersRuntime(Arc<dyn Pace>),
}

/// A kind of blocking job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Writing a batch to the log.
    LogWrite,
    /// Reading the log from its device.
    LogRead,
    /// Applying an entry, or installing a snapshot.
    Apply,
    /// Making the state durable, or taking a snapshot of it.
    Capture,
    /// Packing or unpacking a part of a snapshot in transfer.
    SnapshotPart,
    /// Reading many rows or checking large values, for the replica's user.
    Query,
}

/// The duration of blocking jobs in a simulation.
pub trait Pace: Send + Sync + 'static {
    /// The duration of one job of this kind.
    fn duration(&self, job_kind: JobKind) -> Duration;
}

/// Runs a replica's blocking jobs; clones share it.
#[derive(Clone)]
pub struct BlockingPool(Kind);

#[derive(Clone)]
enum Kind {
    /// Threads beside the runtime.
    Threads(Threads),
    /// Tasks of the runtime.
    Tasks(Arc<dyn Pace>),
}

impl BlockingPool {
    /// Processes a queue until its senders are gone, in order. `work` gets the first item and the
    /// queue behind it, of which it may take more. A panic ends it and is logged: the senders find
    /// the queue closed.
    ///
    /// # Errors
    /// [`io::Error`] if the system cannot create a thread.
    pub(crate) fn serve<T: Send + 'static>(
        &self,
        name: String,
        job_kind: JobKind,
        mut queue: mpsc::Receiver<T>,
        mut work: impl FnMut(T, &mut mpsc::Receiver<T>) + Send + 'static,
    ) -> io::Result<()> {
        match &self.0 {
            Kind::Threads(threads) => threads.spawn(name, move || {
                while let Some(first) = queue.blocking_recv() {
                    work(first, &mut queue);
                }
            }),
            Kind::Tasks(pace) => {
                let pace = Arc::clone(pace);
                tokio::spawn(async move {
                    while let Some(first) = queue.recv().await {
                        pass(pace.duration(job_kind)).await;
                        if let Err(error) = contained(|| work(first, &mut queue)) {
                            tracing::error!(task = name, %error, "a task of the replica ended");
                            return;
                        }
                    }
                });
                Ok(())
            }
        }
    }

    /// Runs a job on the blocking pool.
    ///
    /// # Errors
    /// [`io::Error`] if it panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        job_kind: JobKind,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        match &self.0 {
            Kind::Threads(_) => tokio::task::spawn_blocking(work)
                .await
                .map_err(io::Error::other),
            Kind::Tasks(pace) => {
                pass(pace.duration(job_kind)).await;
                contained(work)
            }
        }
    }

    /// Waits until all threads have ended, but no longer than `timeout`. Blocks.
    pub(crate) fn join(&self, timeout: Duration) {
        match &self.0 {
            Kind::Threads(threads) => threads.join(timeout),
            Kind::Tasks(_) => {}
        }
    }
}

impl From<Execution> for BlockingPool {
    fn from(execution: Execution) -> Self {
        Self(match execution {
            Execution::OwnThreads => Kind::Threads(Threads::default()),
            Execution::CallersRuntime(pace) => Kind::Tasks(pace),
        })
    }
}

/// Does what a separate thread would do: a panic ends the job, not its caller.
fn contained<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message");
        io::Error::other(format!("a blocking job of the replica panicked: {text}"))
    })
}

async fn pass(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

/// The threads of one replica, so that its end can wait for theirs; clones share them.
///
/// They hold the stores. A process that exits while one of them still closes RocksDB aborts instead
/// of returning its exit status.
#[derive(Clone, Default)]
pub(crate) struct Threads {
    threads: Arc<Mutex<Vec<Thread>>>,
}

struct Thread {
    handle: JoinHandle<()>,
    /// Closed when the thread ends.
    ended: Receiver<()>,
}

impl Threads {
    fn spawn(&self, name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let (end, ended) = sync_channel(0);
        let run = move || {
            let _end = end;
            work();
        };
        let handle = std::thread::Builder::new().name(name).spawn(run)?;
        self.threads().push(Thread { handle, ended });
        Ok(())
    }

    fn join(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        for Thread { handle, ended } in self.threads().drain(..) {
            let left = deadline.saturating_duration_since(Instant::now());
            if ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                let thread = handle.thread().name().unwrap_or_default();
                tracing::error!(
                    thread,
                    "a thread of the replica does not end: it is left behind"
                );
            } else if handle.join().is_err() {
                tracing::error!("a thread of the replica had panicked");
            }
        }
    }

    fn threads(&self) -> MutexGuard<'_, Vec<Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    struct NoDelay;

    impl Pace for NoDelay {
        fn duration(&self, _job_kind: JobKind) -> Duration {
            Duration::ZERO
        }
    }

    #[tokio::test]
    async fn threads_and_tasks_alike_work_off_a_queue_in_order_and_do_work_aside() {
        let tasks = Execution::CallersRuntime(Arc::new(NoDelay));
        for execution in [Execution::OwnThreads, tasks] {
            let blocking_pool = BlockingPool::from(execution);
            let (sender, queue) = mpsc::channel(100);
            let (worked, mut done) = mpsc::channel(100);
            let work = move |first: u32, queue: &mut mpsc::Receiver<u32>| {
                worked.try_send(first).unwrap();
                if let Ok(next) = queue.try_recv() {
                    worked.try_send(next).unwrap();
                }
            };
            blocking_pool
                .serve("test".to_owned(), JobKind::Apply, queue, work)
                .unwrap();
            for number in 0..99 {
                sender.send(number).await.unwrap();
            }
            for number in 0..99 {
                assert_eq!(done.recv().await, Some(number));
            }
            assert_eq!(blocking_pool.run(JobKind::Capture, || 7).await.unwrap(), 7);
            drop(sender);
            assert_eq!(done.recv().await, None);
            blocking_pool.join(Duration::from_secs(30));
        }
    }

    #[test]
    fn the_end_does_not_wait_for_ever_for_a_thread_that_hangs() {
        let threads = Threads::default();
        let (hang, hung) = sync_channel::<()>(0);
        let wait = move || assert!(hung.recv().is_err());
        threads.spawn("hangs".to_owned(), wait).unwrap();
        threads.spawn("ends".to_owned(), || {}).unwrap();
        threads.join(Duration::from_millis(10));
        assert!(threads.threads().is_empty());
        drop(hang);
    }

    #[tokio::test]
    async fn a_panic_of_a_blocking_job_is_an_error_for_its_caller() {
        let tasks = Execution::CallersRuntime(Arc::new(NoDelay));
        for execution in [Execution::OwnThreads, tasks] {
            let blocking_pool = BlockingPool::from(execution);
            let ended = blocking_pool
                .run(JobKind::Capture, || panic!("no room"))
                .await;
            let ended: io::Result<()> = ended;
            let text = ended.unwrap_err().to_string();
            assert!(text.contains("no room"), "{text}");
        }
    }

    #[tokio::test]
    async fn a_task_that_panics_says_so_and_closes_its_queue() {
        let told = Arc::new(AtomicUsize::new(0));
        let listening = tracing::subscriber::set_default(Errors(Arc::clone(&told)));
        let blocking_pool = BlockingPool::from(Execution::CallersRuntime(Arc::new(NoDelay)));
        let (sender, queue) = mpsc::channel(1);
        let work = |(), _: &mut mpsc::Receiver<()>| panic!("no room");
        blocking_pool
            .serve("test".to_owned(), JobKind::Apply, queue, work)
            .unwrap();
        sender.send(()).await.unwrap();
        sender.closed().await;
        assert_eq!(told.load(Ordering::Relaxed), 1);
        drop(listening);
    }

    /// Counts the logged errors.
    struct Errors(Arc<AtomicUsize>);

    impl Subscriber for Errors {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() == Level::ERROR
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }
}
