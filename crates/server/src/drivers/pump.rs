//! What is applied on this node goes to the polls and the drivers.

use super::Driver;
use super::signals::Signals;
use super::term;
use crate::context::Context;
use crate::workers::{Hub, ToWorker, WorkerKey};
use flotilla_engine::{Assignment, Effect, view};
use flotilla_replica::{AppliedBatch, Notice};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Starts the pump and, whenever this node leads, the drivers. Ends with `context.shutdown`.
pub(crate) fn start(context: Arc<Context>, hub: Arc<Hub>) -> JoinHandle<()> {
    let driver = Driver {
        context,
        hub,
        signals: Arc::new(Signals::default()),
    };
    let terms = tokio::spawn(term::lead_again_and_again(driver.clone()));
    tokio::spawn(async move {
        pump(&driver).await;
        // The pump ends at shutdown, and so do the terms.
        drop(terms.await);
    })
}

async fn pump(driver: &Driver) {
    let mut subscription = driver.context.gateway.replica().subscribe();
    loop {
        let notice = tokio::select! {
            notice = subscription.next() => notice,
            () = driver.context.shutdown.cancelled() => None,
        };
        match notice {
            Some(Notice::Applied(batch)) => driver.take_in(&batch),
            // What was assigned is unknown now: workers open their polls anew and say what they hold.
            Some(Notice::Lost) => driver.hub.close_all(),
            None => break,
        }
    }
    driver.hub.close_all();
}

impl Driver {
    fn take_in(&self, batch: &AppliedBatch) {
        self.hub.take_back(&batch.offers);
        for effect in &batch.effects {
            match effect {
                Effect::WakeWorkers { namespace, action } => {
                    self.hub.want((namespace.clone(), action.clone()));
                }
                Effect::DeliverTask {
                    worker,
                    poll,
                    assignment,
                } => {
                    let namespace = assignment.namespace.clone();
                    let key = WorkerKey {
                        namespace,
                        worker: worker.clone(),
                    };
                    self.deliver(&key, *poll, assignment);
                }
                Effect::RevokeTask {
                    namespace,
                    worker,
                    token,
                } => {
                    let key = WorkerKey {
                        namespace: namespace.clone(),
                        worker: worker.clone(),
                    };
                    self.hub.send(&key, None, ToWorker::Revoked(*token));
                }
                Effect::DrainWorker { namespace, worker } => {
                    let key = WorkerKey {
                        namespace: namespace.clone(),
                        worker: worker.clone(),
                    };
                    self.hub.send(&key, None, ToWorker::Draining);
                }
                Effect::ArmTimer { due_ms } => self.signals.arm(*due_ms),
                Effect::CheckChildInput { parent, activation } => {
                    self.signals.check((*parent, *activation));
                }
                Effect::RunChanged { .. }
                | Effect::ActionRunEnded { .. }
                | Effect::ModulesChanged => {}
            }
        }
    }

    /// Hands a task to its poll. On other nodes than the one that made the offer there is no such
    /// poll and no other one of the worker: nothing happens.
    fn deliver(&self, key: &WorkerKey, poll: u64, assignment: &Assignment) {
        if !self.hub.is_open(key) {
            return;
        }
        let reference = assignment.input;
        let input = self
            .context
            .gateway
            .read_here(move |reader| view::payload(reader, reference));
        match input {
            Ok(input) => {
                let task = ToWorker::Task(Box::new(assignment.clone()), input);
                self.hub.send(key, Some(poll), task);
            }
            // The lease stands: the task is handed out again when the worker polls anew, or its
            // lease ends.
            Err(refusal) => {
                tracing::warn!(task = %assignment.token.task_id(), %refusal, "a task was not delivered")
            }
        }
    }
}
