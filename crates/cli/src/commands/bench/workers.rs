//! The workers of a bench: part of this process, but connected over gRPC like any other.

use super::load::Connections;
use crate::code::Code;
use crate::failure::Failure;
use crate::progress::Progress;
use flotilla_client::v1::{ListWorkersRequest, WorkerRecord, WorkerStatus};
use flotilla_client::{Client, ClientError, Worker, WorkerBuilder};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How often to check for an external worker.
const ASKED_EVERY: Duration = Duration::from_millis(100);

/// The drain grace after the load: no task should be left then.
const DRAIN_GRACE: Duration = Duration::from_secs(1);

/// The settings of the workers.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Their connections.
    pub(super) connections: Connections,
    /// The number of workers.
    pub(super) workers: u16,
    /// The number of tasks that each runs at the same time.
    pub(super) slots: u16,
}

/// The running workers.
#[derive(Debug)]
pub(super) struct BenchWorkers {
    workers: JoinSet<Result<(), ClientError>>,
    stop: CancellationToken,
}

impl BenchWorkers {
    /// Starts workers with the same handlers and waits until the leader has accepted them all.
    ///
    /// # Errors
    /// Why a worker was refused.
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
                    // The channel has capacity for each worker, and a dropped receiver need not
                    // know.
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

    /// Stops the workers.
    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        // A failed worker has stopped as well.
        while self.workers.join_next().await.is_some() {}
    }
}

/// Waits until an external worker takes tasks of an action, for at most the call timeout.
///
/// # Errors
/// `no_worker` if none registers in time; otherwise what the cluster refuses.
pub(super) async fn wait_for_one(client: &Client, action: &str) -> Result<(), Failure> {
    let _progress = Progress::start(format!("waiting for a worker of {action}"));
    let until = Instant::now() + client.timeout();
    while !is_one_there(client, action).await? {
        if Instant::now() >= until {
            let message = format!(
                "expected a worker of action {action} within {:?}, but none has registered",
                client.timeout()
            );
            let hint = "start one for this cluster and namespace, allow more time with --timeout, or let the \
                bench run its own with --workers 1";
            return Err(Failure::new(Code::NoWorker, message).with_hint(hint));
        }
        sleep(ASKED_EVERY).await;
    }
    Ok(())
}

async fn is_one_there(client: &Client, action: &str) -> Result<bool, Failure> {
    let mut page_token = String::new();
    loop {
        let request = ListWorkersRequest {
            page_token,
            ..ListWorkersRequest::default()
        };
        let page = client.list_workers(request).await?;
        if page.items.iter().any(|worker| serves(worker, action)) {
            return Ok(true);
        }
        if page.next_page_token.is_empty() {
            return Ok(false);
        }
        page_token = page.next_page_token;
    }
}

fn serves(worker: &WorkerRecord, action: &str) -> bool {
    let is_at_work = matches!(worker.status(), WorkerStatus::Active | WorkerStatus::Idle);
    is_at_work
        && worker
            .processes
            .iter()
            .any(|process| process.name == action)
}
