//! Passes applied entries to the node's polls and drivers, and to the record.

use super::drivers::Driver;
use flotilla_engine::Effect;
use flotilla_replica::{AppliedBatch, Notice, Subscription};

/// Runs as long as the replica does.
pub(super) async fn pump(driver: Driver, mut subscription: Subscription) {
    while let Some(notice) = subscription.next().await {
        match notice {
            Notice::Applied(batch) => take_in(&driver, &batch),
            // The state was replaced, or this task fell behind: drivers read it again.
            Notice::Lost => {
                driver.armed.notify_waiters();
                driver.hub.wake();
            }
        }
    }
}

fn take_in(driver: &Driver, batch: &AppliedBatch) {
    let node = driver.replica.node_id();
    driver.hub.return_slots(node, batch);
    for effect in &batch.effects {
        match effect {
            Effect::DeliverTask {
                worker,
                poll,
                assignment,
            } => {
                driver.record.assigned(batch, worker, assignment);
                if batch.node == node {
                    driver.hub.deliver(*poll, batch.term, assignment);
                }
            }
            Effect::WakeWorkers { .. } => driver.hub.wake(),
            Effect::ArmTimer { .. } | Effect::ArmSchedule { .. } => driver.armed.notify_waiters(),
            Effect::RevokeTask { .. }
            | Effect::DrainWorker { .. }
            | Effect::ArmTrigger { .. }
            | Effect::ArmRetention { .. }
            | Effect::CheckSchema { .. }
            | Effect::RunChanged { .. }
            | Effect::ModulesChanged
            | Effect::ActionRunEnded { .. }
            | Effect::StreamChanged { .. }
            | Effect::RecordsReady { .. }
            | Effect::RecordsLost { .. } => {}
        }
    }
}
