//! One node's worker in one namespace.

use super::job::Job;
use super::link::Link;
use super::registration::Registration;
use super::slots::Share;
use super::task_pool::{Ended, TaskPool};
use super::{Actionset, Shared};
use crate::errors::Refusal;
use crate::limits::TASKS_PREPARING_MAX;
use flotilla_api::v1;
use flotilla_engine::TaskToken;
use flotilla_engine::ids::Namespace;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{Instrument, info_span};
use v1::server_message::Message;

/// The delay before the worker reopens its stream.
const REOPEN_DELAY: Duration = Duration::from_millis(200);
/// The interval of its heartbeats (A20).
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// One node's worker in one namespace.
struct Worker {
    shared: Shared,
    namespace: Namespace,
    registration: Registration,
    task_pool: TaskPool,
    /// The leader's last word on draining (A21).
    is_draining: bool,
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
    let registration = Registration::new(&shared, namespace.clone());
    let mut worker = Worker {
        shared,
        namespace,
        registration,
        task_pool: TaskPool::default(),
        is_draining: false,
    };
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
        let hello = v1::WorkerHello {
            namespace: self.namespace.to_string(),
            worker_id: self.registration.worker_id.to_string(),
            incarnation: self.registration.incarnation,
            actions: known.iter().map(ToString::to_string).collect(),
            held_task_tokens: self.task_pool.tokens().map(ToString::to_string).collect(),
            supports_batches: false,
        };
        let link = Link::open(&self.shared.context, hello).await;
        let mut link = link.map_err(|status| Refusal::unavailable(status.message()))?;
        let mut share = self.shared.slots.share();
        let mut heartbeat = interval(HEARTBEAT_INTERVAL);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stop = self.shared.stop.clone();
        loop {
            if link.offer(self.offer(&mut share)).await.is_err() {
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
                ended = self.task_pool.next() => {
                    self.finish_job(ended);
                    if self.is_done(&known) {
                        return Ok(StreamEnd::Again);
                    }
                }
                () = share.changed() => {}
                _ = heartbeat.tick() => if link.heartbeat(self.task_pool.len()).await.is_err() {
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
        drop(self.task_pool);
        if let Err(refusal) = self.registration.release().await {
            tracing::info!(%refusal, "the node stops or is drained, and its tasks could not be returned: each has used an attempt");
        }
    }

    fn is_done(&self, actions: &Actionset) -> bool {
        actions.is_empty() && self.task_pool.len() == 0
    }

    /// The number of tasks that the worker would take now. Reports without a response take no slot, nor
    /// do tasks whose module is compiled, but they must not pile up either.
    fn offer(&self, share: &mut Share) -> usize {
        if self.is_draining {
            return 0;
        }
        let in_hand_max = 2 * self.shared.slots.total() + TASKS_PREPARING_MAX;
        share
            .offer()
            .min(in_hand_max.saturating_sub(self.task_pool.len()))
    }

    fn receive(&mut self, message: Message, share: &Share) -> Option<StreamEnd> {
        match message {
            Message::Task(task) => self.begin(task, share),
            Message::HelloOk(hello_ok) => {
                self.is_draining = hello_ok.status() == v1::WorkerStatus::Draining;
            }
            Message::Draining(v1::Draining {}) => self.is_draining = true,
            Message::Cancelled(cancelled) => {
                if let Ok(token) = cancelled.task_token.parse() {
                    match cancelled.answer_awaited {
                        true => self.task_pool.cancel(&token),
                        false => self.task_pool.give_up(&token),
                    }
                }
            }
            // The response to a heartbeat: the stream carries no others.
            Message::Result(result) => {
                let error = result.result.and_then(|result| result.error);
                if error.is_some_and(|error| self.registration.note_reason(&error.reason)) {
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
        let Ok(token) = task.task_token.parse::<TaskToken>() else {
            return;
        };
        if self.task_pool.knows(&token) {
            return;
        }
        let span = info_span!(
            "task",
            task_id = task.task_id,
            action = task.action,
            run_id = task.run_id
        );
        let (job, ticket) = (self.job(token), share.take());
        let run = |cancellation| job.run(task, ticket, cancellation).instrument(span);
        self.task_pool.start(token, run);
    }

    /// Removes a finished task; if its job panicked, it still has to be reported.
    fn finish_job(&mut self, Ended { token, panic }: Ended) {
        if let Some(panic) = panic {
            let job = self.job(token);
            self.task_pool.start(token, |_| job.fail(panic));
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
