//! The pump: passes what this node applies to the polls and the drivers.

use crate::bug::PlantedBug;
use crate::drivers::Driver;
use crate::hub::{Delivery, Revocation, ToWorker, WorkerKey};
use flotilla_engine::Effect;
use flotilla_replica::{AppliedBatch, Notice};

/// Passes on what is applied, until shutdown or until the replica ends.
pub(crate) async fn pump(driver: &Driver) {
    let mut subscription = driver.context.replica.subscribe();
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
    driver.hub().end_term();
}

impl Driver {
    /// Assignments are unknown now: workers reopen their polls and report the tasks that they hold.
    fn lose_track(&self) {
        if self.hub().is_taking() {
            self.hub().close_all();
            self.wakeups.lose();
        }
    }

    /// Only a leader has polls and drivers; on other nodes nothing would drain the hints.
    fn take_in(&self, batch: &AppliedBatch) {
        if !self.hub().is_taking() {
            return;
        }
        let deliveries = batch.effects.iter().filter_map(delivery).collect();
        self.hub().return_slots(&batch.offers, deliveries);
        for effect in &batch.effects {
            match effect {
                Effect::WakeWorkers { namespace, action } => {
                    self.hub().task_waits(&(namespace.clone(), action.clone()));
                }
                Effect::ArmTimer { due_ms } => self.wakeups.timers.arm(*due_ms),
                Effect::ArmSchedule { due_ms } => self.wakeups.schedules.arm(*due_ms),
                Effect::ArmTrigger { due_ms } if !self.has(PlantedBug::LostWakeup) => {
                    self.wakeups.triggers.arm(*due_ms);
                }
                Effect::ArmRetention { due_ms } => self.wakeups.retention.arm(*due_ms),
                Effect::CheckSchema { run, activation } if !self.has(PlantedBug::LostChecks) => {
                    self.wakeups.check((*run, *activation));
                }
                Effect::RecordsLost {
                    namespace,
                    stream,
                    count,
                } => {
                    tracing::warn!(%namespace, %stream, count, "a full stream dropped records \
                                                                that a trigger had not consumed");
                }
                Effect::DeliverTask { .. }
                | Effect::RevokeTask { .. }
                | Effect::ArmTrigger { .. }
                | Effect::CheckSchema { .. }
                | Effect::DrainWorker { .. }
                | Effect::RunChanged { .. }
                | Effect::ActionRunEnded { .. }
                | Effect::StreamChanged { .. }
                | Effect::RecordsReady { .. }
                | Effect::ModulesChanged
                | Effect::AccessChanged => {}
            }
        }
    }
}

/// The delivery that an effect holds for a worker.
fn delivery(effect: &Effect) -> Option<Delivery> {
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
            is_answer_awaited,
        } => {
            let revoked = ToWorker::Revoked(Revocation {
                token: *token,
                is_answer_awaited: *is_answer_awaited,
            });
            (namespace, worker, None, revoked)
        }
        Effect::DrainWorker { namespace, worker } => (namespace, worker, None, ToWorker::Draining),
        Effect::WakeWorkers { .. }
        | Effect::ArmTimer { .. }
        | Effect::ArmSchedule { .. }
        | Effect::ArmTrigger { .. }
        | Effect::ArmRetention { .. }
        | Effect::CheckSchema { .. }
        | Effect::RunChanged { .. }
        | Effect::ActionRunEnded { .. }
        | Effect::StreamChanged { .. }
        | Effect::RecordsReady { .. }
        | Effect::RecordsLost { .. }
        | Effect::ModulesChanged
        | Effect::AccessChanged => return None,
    };
    Some(Delivery {
        key: WorkerKey {
            namespace: namespace.clone(),
            worker: worker.clone(),
        },
        poll,
        message,
    })
}
