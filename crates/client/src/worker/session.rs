//! One stream, from hello to its end.

use super::job;
use super::link::Link;
use super::outbox::Order;
use super::report::Report;
use super::service::Service;
use crate::error::ClientError;
use crate::failure::{Failure, Verdict};
use flotilla_api::v1;
use flotilla_api::v1::server_message::Message;
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

/// The reason with which the cluster asks a worker to register (A21).
pub(super) const WORKER_NOT_FOUND: &str = "worker_not_found";
/// The code of a report on a task that is over.
const ACTION_RUN_ENDED: &str = "action_run_ended";
/// The reason with which a node redirects a worker to the leader.
pub(super) const NOT_LEADER: &str = "not_leader";

/// Why a stream ended.
#[derive(Debug)]
pub(super) enum SessionEnd {
    /// The worker takes no more tasks and holds none.
    Settled,
    /// The cluster does not know the worker.
    Unregistered,
    /// This node is not the leader; it may have named the leader.
    Moved,
    /// The stream broke.
    Lost(ClientError),
    /// The cluster refuses the worker permanently.
    Refused(ClientError),
}

impl SessionEnd {
    /// The end that a failed call or a broken stream means.
    pub(super) fn from_failure(failure: Failure) -> Self {
        match (failure.error.code(), failure.verdict) {
            (WORKER_NOT_FOUND, _) => Self::Unregistered,
            (NOT_LEADER, _) => Self::Moved,
            (_, Verdict::Again { .. } | Verdict::Elsewhere) => Self::Lost(failure.error),
            (_, Verdict::Final) => Self::from_error(failure.error),
        }
    }

    /// The end that a final error means.
    pub(super) fn from_error(error: ClientError) -> Self {
        if error.is_passing() {
            Self::Lost(error)
        } else {
            Self::Refused(error)
        }
    }
}

impl Service {
    /// Exchanges messages with the leader until the stream ends.
    pub(super) async fn talk(&mut self, link: &mut Link, stop: &CancellationToken) -> SessionEnd {
        let mut heartbeat = heartbeat(self.setup.heartbeat_interval);
        loop {
            if self.is_done() {
                return SessionEnd::Settled;
            }
            let is_stopping = self.is_stopping();
            let hard_stop_at = self.hard_stop_at();
            let deferred = self.outbox.next_deferred();
            // A closed channel is a broken stream: the last incoming message says why.
            let can_send = self.outbox.has_message() && !link.outgoing.is_closed();
            tokio::select! {
                Ok(permit) = link.outgoing.reserve(), if can_send => {
                    if let Some(message) = self.outbox.next_message() {
                        permit.send(message);
                    }
                }
                received = link.incoming.next() => match received {
                    Ok(message) => if let Some(end) = self.receive(message) {
                        return end;
                    },
                    Err(failure) => return SessionEnd::from_failure(failure),
                },
                Some((task_id, ended)) = self.jobs.join_next() => {
                    self.outbox.report(task_id, Report::of_end(ended));
                }
                Some(order) = self.touches.recv() => self.outbox.touch(order),
                () = sleep_until(deferred.unwrap_or_else(never)), if deferred.is_some() => {
                    self.outbox.queue_deferred();
                }
                _ = heartbeat.tick() => self.outbox.heartbeat(self.jobs.len()),
                () = stop.cancelled(), if !is_stopping => self.stop_gracefully(),
                () = sleep_until(hard_stop_at), if is_stopping => self.stop_hard(),
            }
        }
    }

    fn receive(&mut self, message: Message) -> Option<SessionEnd> {
        match message {
            Message::Task(task) => self.take(task),
            Message::Tasks(batch) => batch.tasks.into_iter().for_each(|task| self.take(task)),
            Message::Result(result) => return self.finish(result),
            Message::Results(batch) => {
                let mut end = None;
                for result in batch.results {
                    let one = self.finish(result);
                    end = end.or(one);
                }
                return end;
            }
            Message::HelloOk(hello_ok) => self.note_hello_ok(hello_ok),
            Message::Draining(v1::Draining {}) => self.drain(),
            Message::Cancelled(cancelled) => {
                let v1::TaskCancelled {
                    task_id,
                    reason,
                    answer_awaited,
                } = cancelled;
                tracing::info!(task = task_id, reason, "a task was cancelled");
                self.jobs.abort(&task_id);
                if !answer_awaited {
                    // Otherwise the end of its job is reported.
                    self.outbox.forget(&task_id);
                }
            }
        }
        None
    }

    fn take(&mut self, task: v1::TaskAssignment) {
        if self.outbox.receive(&task.task_id, &task.task_token) {
            tracing::debug!(task = task.task_id, action = task.action, "a task arrived");
            let task_id = task.task_id.clone();
            let job = job::run(self.setup.clone(), task, self.orders.clone());
            self.jobs.spawn(task_id, job);
        } else {
            tracing::debug!(task = task.task_id, "a task arrived twice");
        }
    }

    fn finish(&mut self, result: v1::MessageResult) -> Option<SessionEnd> {
        match self.outbox.answer(result)? {
            Order::GiveUp { task_id, error } => {
                if error.code() == ACTION_RUN_ENDED {
                    // The report arrived before a leader change and was sent again afterwards.
                    tracing::info!(task = task_id, %error, "the task has ended already");
                } else {
                    tracing::warn!(task = task_id, %error, "the cluster has abandoned the task");
                }
                self.jobs.abort(&task_id);
                None
            }
            // The end of its job is reported.
            Order::Cancel { task_id } => {
                self.jobs.abort(&task_id);
                None
            }
            Order::Reopen(error) if error.code() == WORKER_NOT_FOUND => {
                Some(SessionEnd::Unregistered)
            }
            Order::Reopen(error) => Some(SessionEnd::Lost(error)),
        }
    }
}

/// Ticks immediately, then at the interval; a late tick does not hurry the next one.
fn heartbeat(period: Duration) -> Interval {
    let mut heartbeat = interval(period);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeat
}

/// A time beyond the lifetime of any process.
pub(super) fn never() -> Instant {
    Instant::now() + Duration::from_secs(365 * 24 * 3600)
}
