//! Ready tasks meet free slots.
//!
//! Most tasks are given to an offer in the very turn that makes them ready. The rest wait in the
//! queue; this driver proposes to assign them whenever an action may have both a ready task and a
//! free slot.

use super::Driver;
use crate::workers::ActionKey;
use flotilla_engine::{AssignTasks, Body, Command, Reply, view};
use futures::future::join_all;
use tokio::time::sleep;

/// Assigns as long as the node leads.
pub(super) async fn drive(driver: &Driver) {
    loop {
        let wanted = driver.hub.wanted().await;
        join_all(wanted.into_iter().map(|key| assign(driver, key))).await;
    }
}

async fn assign(driver: &Driver, key: ActionKey) {
    let (namespace, action) = key.clone();
    let has_ready = driver
        .context
        .gateway
        .read_here(move |reader| view::has_ready(reader, &namespace, &action));
    if !has_ready.unwrap_or(false) || !driver.hub.has_slot(&key) {
        return;
    }
    let (namespace, action) = key.clone();
    let command = Command::new(namespace, Body::AssignTasks(AssignTasks { action }));
    match driver
        .context
        .gateway
        .submit(command, Driver::deadline())
        .await
    {
        // The slots that are left, and those that come back, make the action wanted again.
        Ok(Reply::TasksAssigned { count }) if count > 0 => driver.hub.want(key),
        Ok(_) => {}
        Err(refusal) => {
            tracing::debug!(%refusal, "ready tasks were not assigned");
            sleep(super::RETRY_DELAY).await;
            driver.hub.want(key);
        }
    }
}
