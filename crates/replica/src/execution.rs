//! Where a replica runs: on threads of its own or, in a simulation, on its caller's runtime.
//!
//! A real replica has a runtime for consensus, a thread that writes the log and one that applies it, so
//! that load elsewhere cannot starve its heartbeats. A simulation runs many replicas on one thread and
//! decides what comes first; there the same work is done by tasks, and takes time by agreement only.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// Where a replica runs.
#[derive(Clone, Default)]
pub enum Execution {
    /// On a runtime and on threads of its own.
    #[default]
    OwnThreads,
    /// On the runtime on which it is started, as tasks: they end with it. Work that would block a
    /// thread waits for as long as the pace says, and is then done at once.
    CallersRuntime(Arc<dyn Pace>),
}

/// Work of a replica that blocks a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Writing what waits to the log.
    LogWrite,
    /// Reading the log from its device.
    LogRead,
    /// Applying an entry, or installing a snapshot.
    Apply,
    /// Making the state durable, or a snapshot of it.
    Capture,
    /// Packing or unpacking a part of a snapshot that travels.
    SnapshotPart,
}

/// How long work takes in a simulation.
pub trait Pace: Send + Sync + 'static {
    /// How long this piece of work takes.
    fn duration(&self, work: Work) -> Duration;
}

/// Who does the work that blocks; clones share it.
#[derive(Clone)]
pub(crate) enum Workers {
    /// Threads beside the runtime.
    Threads(Threads),
    /// Tasks of the runtime.
    Tasks(Arc<dyn Pace>),
}

impl Workers {
    /// Works off a queue until its senders are gone, in order. `work` gets what has come first, and the
    /// queue behind it, of which it may take more.
    ///
    /// # Errors
    /// [`io::Error`] when the system has no thread to give.
    pub(crate) fn serve<T: Send + 'static>(
        &self,
        (name, kind): (String, Work),
        mut queue: mpsc::Receiver<T>,
        mut work: impl FnMut(T, &mut mpsc::Receiver<T>) + Send + 'static,
    ) -> io::Result<()> {
        match self {
            Self::Threads(threads) => threads.spawn(name, move || {
                while let Some(first) = queue.blocking_recv() {
                    work(first, &mut queue);
                }
            }),
            Self::Tasks(pace) => {
                let pace = Arc::clone(pace);
                tokio::spawn(async move {
                    while let Some(first) = queue.recv().await {
                        pass(pace.duration(kind)).await;
                        work(first, &mut queue);
                    }
                });
                Ok(())
            }
        }
    }

    /// Does a piece of work aside.
    ///
    /// # Errors
    /// [`io::Error`] when it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        kind: Work,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        match self {
            Self::Threads(_) => tokio::task::spawn_blocking(work)
                .await
                .map_err(io::Error::other),
            Self::Tasks(pace) => {
                pass(pace.duration(kind)).await;
                Ok(work())
            }
        }
    }

    /// Waits until all threads have ended. Blocks.
    pub(crate) fn join(&self) {
        match self {
            Self::Threads(threads) => threads.join(),
            Self::Tasks(_) => {}
        }
    }
}

impl From<Execution> for Workers {
    fn from(execution: Execution) -> Self {
        match execution {
            Execution::OwnThreads => Self::Threads(Threads::default()),
            Execution::CallersRuntime(pace) => Self::Tasks(pace),
        }
    }
}

async fn pass(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}

/// The threads of one replica, so that its end can wait for theirs; clones share them.
///
/// They hold the stores. A process that exits while one of them still closes RocksDB aborts instead
/// of giving its exit status.
#[derive(Clone, Default)]
pub(crate) struct Threads {
    handles: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Threads {
    fn spawn(&self, name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let handle = std::thread::Builder::new().name(name).spawn(work)?;
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.push(handle);
        Ok(())
    }

    fn join(&self) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        for handle in handles.drain(..) {
            if handle.join().is_err() {
                tracing::error!("a thread of the replica had panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct AtOnce;

    impl Pace for AtOnce {
        fn duration(&self, _work: Work) -> Duration {
            Duration::ZERO
        }
    }

    #[tokio::test]
    async fn threads_and_tasks_alike_work_off_a_queue_in_order_and_do_work_aside() {
        let tasks = Execution::CallersRuntime(Arc::new(AtOnce));
        for execution in [Execution::OwnThreads, tasks] {
            let workers = Workers::from(execution);
            let (sender, queue) = mpsc::channel(100);
            let (worked, mut done) = mpsc::channel(100);
            let work = move |first: u32, queue: &mut mpsc::Receiver<u32>| {
                worked.try_send(first).unwrap();
                if let Ok(next) = queue.try_recv() {
                    worked.try_send(next).unwrap();
                }
            };
            workers
                .serve(("test".to_owned(), Work::Apply), queue, work)
                .unwrap();
            for number in 0..99 {
                sender.send(number).await.unwrap();
            }
            for number in 0..99 {
                assert_eq!(done.recv().await, Some(number));
            }
            assert_eq!(workers.run(Work::Capture, || 7).await.unwrap(), 7);
            drop(sender);
            assert_eq!(done.recv().await, None);
            workers.join();
        }
    }
}
