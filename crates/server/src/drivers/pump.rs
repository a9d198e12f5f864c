//! What is applied on this node goes to the polls and the drivers.

use super::Driver;
use super::signals::Signals;
use super::term;
use crate::context::Context;
use crate::workers::{Hub, Parcel, ToWorker, WorkerKey};
use flotilla_engine::Effect;
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
            Some(Notice::Lost) => driver.lose_track(),
            None => break,
        }
    }
    driver.hub.end_term();
}

impl Driver {
    /// What was assigned is unknown now: workers open their polls anew and say what they hold.
    fn lose_track(&self) {
        if self.hub.is_taking() {
            self.hub.close_all();
            self.signals.lose();
        }
    }

    /// Only a leader has polls and drivers; on other nodes nobody would drain the hints.
    fn take_in(&self, batch: &AppliedBatch) {
        if !self.hub.is_taking() {
            return;
        }
        let parcels = batch.effects.iter().filter_map(parcel).collect();
        self.hub.settle(&batch.offers, parcels);
        for effect in &batch.effects {
            match effect {
                Effect::WakeWorkers { namespace, action } => {
                    self.hub.task_waits(&(namespace.clone(), action.clone()));
                }
                Effect::ArmTimer { due_ms } => self.signals.timers.arm(*due_ms),
                Effect::ArmSchedule { due_ms } => self.signals.schedules.arm(*due_ms),
                Effect::ArmTrigger { due_ms } => self.signals.triggers.arm(*due_ms),
                Effect::ArmRetention { due_ms } => self.signals.retention.arm(*due_ms),
                Effect::CheckChildInput { parent, activation } => {
                    self.signals.check((*parent, *activation));
                }
                Effect::RecordsLost {
                    namespace,
                    stream,
                    count,
                } => {
                    tracing::warn!(%namespace, %stream, count, "a full stream dropped records that a trigger wanted");
                }
                Effect::DeliverTask { .. }
                | Effect::RevokeTask { .. }
                | Effect::DrainWorker { .. }
                | Effect::RunChanged { .. }
                | Effect::ActionRunEnded { .. }
                | Effect::StreamChanged { .. }
                | Effect::RecordsReady { .. }
                | Effect::ModulesChanged => {}
            }
        }
    }
}

/// What an effect has for a worker.
fn parcel(effect: &Effect) -> Option<Parcel> {
    let (namespace, worker, poll, message) = match effect {
        Effect::DeliverTask {
            worker,
            poll,
            assignment,
        } => {
            let task = ToWorker::Task(assignment.clone());
            (&assignment.namespace, worker, Some(*poll), task)
        }
        Effect::RevokeTask {
            namespace,
            worker,
            token,
        } => (namespace, worker, None, ToWorker::Revoked(*token)),
        Effect::DrainWorker { namespace, worker } => (namespace, worker, None, ToWorker::Draining),
        Effect::WakeWorkers { .. }
        | Effect::ArmTimer { .. }
        | Effect::ArmSchedule { .. }
        | Effect::ArmTrigger { .. }
        | Effect::ArmRetention { .. }
        | Effect::CheckChildInput { .. }
        | Effect::RunChanged { .. }
        | Effect::ActionRunEnded { .. }
        | Effect::StreamChanged { .. }
        | Effect::RecordsReady { .. }
        | Effect::RecordsLost { .. }
        | Effect::ModulesChanged => return None,
    };
    Some(Parcel {
        key: WorkerKey {
            namespace: namespace.clone(),
            worker: worker.clone(),
        },
        poll,
        message,
    })
}
