//! Workers of a bench: part of this process, and over gRPC as any others.

use super::load::Connections;
use crate::failure::Failure;
use flotilla_client::{ClientError, Worker, WorkerBuilder};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long tasks may go on once the load is over: none should be left.
const DRAIN_GRACE: Duration = Duration::from_secs(1);

/// How workers are set up.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Their connections.
    pub(super) connections: Connections,
    /// How many there are.
    pub(super) workers: u16,
    /// How many tasks each runs at a time.
    pub(super) slots: u16,
}

/// Workers that run.
#[derive(Debug)]
pub(super) struct Crew {
    workers: JoinSet<Result<(), ClientError>>,
    stop: CancellationToken,
}

impl Crew {
    /// Starts workers with the same handlers, and waits until the leader knows them all.
    ///
    /// # Errors
    /// What a worker is refused for.
    pub(super) async fn start(
        setup: Setup,
        equip: impl Fn(WorkerBuilder) -> WorkerBuilder,
    ) -> Result<Self, Failure> {
        let stop = CancellationToken::new();
        let mut workers = JoinSet::new();
        let (ready, mut are_ready) = mpsc::channel(usize::from(setup.workers).max(1));
        for number in 0..setup.workers {
            let ready = ready.clone();
            let builder = Worker::builder(setup.connections.of(number))
                .concurrency(setup.slots.into())
                .drain_grace(DRAIN_GRACE)
                .on_ready(move || {
                    // There is room for each, and who does not listen any more need not know.
                    let _ = ready.try_send(());
                });
            let worker = equip(builder).build()?;
            workers.spawn(worker.run(stop.clone().cancelled_owned()));
        }
        for _ in 0..setup.workers {
            tokio::select! {
                _ = are_ready.recv() => {}
                Some(Ok(Err(error))) = workers.join_next() => return Err(error.into()),
            }
        }
        Ok(Self { workers, stop })
    }

    /// Has the workers leave.
    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        // One that failed has left as well.
        while self.workers.join_next().await.is_some() {}
    }
}
