//! One node's worker in one namespace.

use super::job::Job;
use super::link::Link;
use super::registration::Registration;
use super::slots::Share;
use super::{Actionset, Shared};
use crate::errors::Refusal;
use crate::keyring::ShownTaskToken;
use crate::limits::TASKS_PREPARING_MAX;
use flotilla_api::v1;
use flotilla_engine::TaskToken;
use flotilla_engine::ids::Namespace;
use flotilla_worker::Ledger;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::JoinMap;
use tonic::Status;
use tracing::{Instrument, info_span};
use v1::server_message::Message;
use v1::worker_message::Message as Outgoing;

/// The delay before the worker reopens its stream.
const REOPEN_DELAY: Duration = Duration::from_millis(200);
/// The interval of its heartbeats (A20).
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// One node's worker in one namespace.
struct Worker {
    shared: Shared,
    namespace: Namespace,
    registration: Registration,
    /// The held tasks, which wait, run or are being reported. Each has a token that is cancelled
    /// when it should stop and report that.
    ledger: Ledger<TaskToken, CancellationToken>,
    /// The jobs of the held tasks. A job ends when its task is reported.
    jobs: JoinMap<TaskToken, ()>,
}

/// Why a stream ended.
enum StreamEnd {
    /// The worker's actions changed, or the stream broke: reopen it.
    Again,
    /// There is nothing left to do.
    Withdrawn,
    /// The node stops or is drained.
    Stopped,
}

/// Works until the node stops or is drained, or until the namespace has no WASM action and the last task is done.
pub(super) async fn run(
    shared: Shared,
    namespace: Namespace,
    mut actions: watch::Receiver<Actionset>,
) {
    let stop = shared.stop.clone();
    let mut worker = Worker::new(shared, namespace);
    loop {
        match worker.work(&mut actions).await {
            Ok(StreamEnd::Withdrawn) => return,
            Ok(StreamEnd::Stopped) => break,
            Ok(StreamEnd::Again) => {}
            Err(refusal) => tracing::debug!(%refusal, "the embedded worker has no stream"),
        }
        tokio::select! {
            () = sleep(REOPEN_DELAY) => {}
            () = stop.cancelled() => break,
        }
    }
    worker.stop().await;
}

impl Worker {
    fn new(shared: Shared, namespace: Namespace) -> Self {
        // A task takes no slot while its module is compiled.
        let held_max = 2 * shared.slots.total() + TASKS_PREPARING_MAX;
        Self {
            registration: Registration::new(&shared, namespace.clone()),
            shared,
            namespace,
            ledger: Ledger::new(held_max),
            jobs: JoinMap::new(),
        }
    }

    /// Registers if necessary, opens a stream and serves it to its end.
    async fn work(
        &mut self,
        actions: &mut watch::Receiver<Actionset>,
    ) -> Result<StreamEnd, Refusal> {
        let known = actions.borrow_and_update().clone();
        if self.is_done(&known) {
            self.registration.withdraw().await?;
            return Ok(StreamEnd::Withdrawn);
        }
        self.registration.renew(&known).await?;
        let hello = self.hello(&known);
        let link = Link::open(&self.shared.context, &self.namespace, hello).await;
        let mut link = link.map_err(|status| Refusal::unavailable(status.message()))?;
        let mut share = self.shared.slots.share();
        let mut heartbeat = interval(HEARTBEAT_INTERVAL);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.shared.stop.clone();
        loop {
            if self.is_done(&known) || self.offer(&mut link, &mut share).await.is_err() {
                return Ok(StreamEnd::Again);
            }
            tokio::select! {
                heard = link.next() => match heard {
                    Ok(Some(message)) => if let Some(end) = self.receive(message, &share) {
                        return Ok(end);
                    },
                    Ok(None) => return Ok(StreamEnd::Again),
                    Err(status) => {
                        self.registration.note_stream_end(&status);
                        tracing::debug!(%status, "the embedded worker's stream ended");
                        return Ok(StreamEnd::Again);
                    }
                },
                Some((token, ended)) = self.jobs.join_next() => self.finish_job(token, ended),
                () = share.changed() => {}
                _ = heartbeat.tick() => if self.send_heartbeat(&mut link).await.is_err() {
                    return Ok(StreamEnd::Again);
                },
                changed = actions.changed() => if changed.is_ok() {
                    return Ok(StreamEnd::Again);
                } else {
                    break;
                },
                () = stop.cancelled() => break,
            }
        }
        // Until the leader has ended the stream, it may assign tasks to this worker.
        link.close().await;
        Ok(StreamEnd::Stopped)
    }

    /// Drops the tasks, and returns them: another node continues the same attempts (A4).
    async fn stop(self) {
        drop(self.jobs);
        if let Err(refusal) = self.registration.release().await {
            tracing::info!(%refusal, "the node stops or is drained, and its tasks could not be returned: each has used an attempt");
        }
    }

    fn is_done(&self, actions: &Actionset) -> bool {
        actions.is_empty() && self.ledger.held().is_empty()
    }

    /// Starts a stream, with this message.
    fn hello(&mut self, actions: &Actionset) -> v1::WorkerMessage {
        self.ledger.open();
        let hello = v1::WorkerHello {
            namespace: self.namespace.to_string(),
            worker_id: self.registration.worker_id.to_string(),
            incarnation: self.registration.incarnation,
            actions: actions.iter().map(ToString::to_string).collect(),
            held_task_tokens: self.ledger.held().keys().map(ToString::to_string).collect(),
            supports_batches: false,
        };
        self.number(Outgoing::Hello(hello))
    }

    /// Offers the slots that are free, unless it has done so.
    async fn offer(&mut self, link: &mut Link, share: &mut Share) -> Result<(), Status> {
        let Some(max_tasks_total) = self.ledger.offer(share.offer()) else {
            return Ok(());
        };
        let slots = Outgoing::Slots(v1::WorkerSlots { max_tasks_total });
        link.send(self.number(slots)).await
    }

    async fn send_heartbeat(&mut self, link: &mut Link) -> Result<(), Status> {
        let current_load = u32::try_from(self.ledger.held().len()).unwrap_or(u32::MAX);
        let heartbeat = Outgoing::Heartbeat(v1::WorkerLoad { current_load });
        link.send(self.number(heartbeat)).await
    }

    fn number(&mut self, message: Outgoing) -> v1::WorkerMessage {
        v1::WorkerMessage {
            sequence: self.ledger.next_sequence(),
            message: Some(message),
        }
    }

    fn receive(&mut self, message: Message, share: &Share) -> Option<StreamEnd> {
        match message {
            Message::Task(task) => self.begin(task, share),
            Message::HelloOk(hello_ok) => {
                let is_draining = hello_ok.status() == v1::WorkerStatus::Draining;
                self.ledger.set_taking(!is_draining);
            }
            Message::Draining(v1::Draining {}) => self.ledger.set_taking(false),
            Message::Cancelled(cancelled) => {
                let mut held = self.ledger.held().keys();
                let held = held.find(|token| token.task_id() == cancelled.task_id);
                if let Some(token) = held.copied() {
                    self.cancel(&token, cancelled.answer_awaited);
                }
            }
            // The response to a heartbeat: the stream carries no others.
            Message::Result(result) => {
                let error = result.result.and_then(|result| result.error);
                if error.is_some_and(|error| self.registration.note_reason(&error.code)) {
                    return Some(StreamEnd::Again);
                }
            }
            // The hello requests none.
            Message::Tasks(_) | Message::Results(_) => {}
        }
        None
    }

    /// Starts a task, unless it has arrived before.
    fn begin(&mut self, task: v1::TaskAssignment, share: &Share) {
        let Ok(token) = ShownTaskToken::unverified(&task.task_token) else {
            return;
        };
        let cancellation = CancellationToken::new();
        if !self.ledger.receive(token, cancellation.clone()) {
            return;
        }
        let span = info_span!(
            "task",
            task_id = task.task_id,
            action = task.action,
            run_id = task.run_id
        );
        let (job, ticket) = (self.job(token), share.take());
        let run = job.run(task, ticket, cancellation).instrument(span);
        self.jobs.spawn(token, run);
    }

    /// Stops a task and lets it report that, or drops it without a report. One that is being
    /// reported already is reported as it ended.
    fn cancel(&mut self, token: &TaskToken, is_report_awaited: bool) {
        if !is_report_awaited {
            self.jobs.abort(token);
            self.ledger.close(token);
        } else if let Some(cancellation) = self.ledger.held().get(token) {
            cancellation.cancel();
        }
    }

    /// Closes a finished task; if its job panicked, it still has to be reported.
    fn finish_job(&mut self, token: TaskToken, ended: Result<(), JoinError>) {
        match ended {
            Err(panic) if panic.is_panic() => {
                let job = self.job(token);
                self.jobs.spawn(token, job.fail(panic));
            }
            _ => self.ledger.close(&token),
        }
    }

    fn job(&self, token: TaskToken) -> Job {
        Job {
            shared: self.shared.clone(),
            namespace: self.namespace.clone(),
            token,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::Slots;
    use crate::embedded::runner::Runner;
    use crate::testing::StillNode;
    use flotilla_engine::ids::ActionRunNumber;
    use std::future::pending;
    use std::sync::Arc;

    const TOKEN: TaskToken = TaskToken {
        action_run: ActionRunNumber(1),
        attempt: 1,
        secret: 0,
    };

    /// A worker that holds the task [`TOKEN`]; the second value is cancelled with the task.
    fn worker(node: &StillNode) -> (Worker, CancellationToken) {
        let context = node.context.clone();
        let runner = Runner::new(context.clone()).expect("modules run on this machine");
        let shared = Shared {
            context,
            runner: Arc::new(runner),
            slots: Slots::new(1),
            stop: CancellationToken::new(),
        };
        let mut worker = Worker::new(shared, Namespace::default_namespace());
        let cancellation = CancellationToken::new();
        assert!(worker.ledger.receive(TOKEN, cancellation.clone()));
        (worker, cancellation)
    }

    async fn finish_next_job(worker: &mut Worker) {
        let (token, ended) = worker.jobs.join_next().await.expect("a job");
        worker.finish_job(token, ended);
    }

    fn is_held(worker: &Worker) -> bool {
        worker.ledger.held().contains_key(&TOKEN)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_job_that_panics_leaves_a_task_to_be_reported() {
        let node = StillNode::start().await;
        let (mut worker, _) = worker(&node);
        worker.jobs.spawn(TOKEN, async { panic!("a bug") });
        finish_next_job(&mut worker).await;
        assert!(is_held(&worker), "it is being reported");
        // The cluster does not know the task.
        finish_next_job(&mut worker).await;
        assert!(!is_held(&worker) && worker.jobs.is_empty());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_task_that_is_given_up_ends_without_a_report() {
        let node = StillNode::start().await;
        let (mut worker, cancellation) = worker(&node);
        worker.jobs.spawn(TOKEN, pending());
        worker.cancel(&TOKEN, false);
        assert!(!is_held(&worker) && !cancellation.is_cancelled());
        finish_next_job(&mut worker).await;
        assert!(worker.jobs.is_empty());
        assert!(!worker.ledger.receive(TOKEN, CancellationToken::new()));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_cancelled_task_ends_when_it_has_reported_that() {
        let node = StillNode::start().await;
        let (mut worker, cancellation) = worker(&node);
        worker.jobs.spawn(TOKEN, cancellation.cancelled_owned());
        worker.cancel(&TOKEN, true);
        assert!(is_held(&worker));
        finish_next_job(&mut worker).await;
        assert!(!is_held(&worker));
    }
}
