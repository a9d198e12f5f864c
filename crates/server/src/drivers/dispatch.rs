//! Ready tasks meet free slots.
//!
//! Most tasks are given to an offer in the very turn that makes them ready. The rest wait in the
//! queue; this driver proposes to assign them whenever an action may have both a ready task and a
//! free slot.

use super::{Driver, RETRY_DELAY};
use crate::workers::ActionKey;
use flotilla_engine::{AssignTasks, Body, Command, Reply, view};
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeSet;
use tokio::time::sleep;

/// Assigns as long as the node leads: one proposal for an action at a time.
pub(super) async fn drive(driver: &Driver) {
    let mut under_way = FuturesUnordered::new();
    let mut busy = BTreeSet::new();
    let mut wanted_again = BTreeSet::new();
    loop {
        tokio::select! {
            wanted = driver.hub.wanted() => for key in wanted {
                if busy.insert(key.clone()) {
                    under_way.push(assign(driver, key));
                } else {
                    wanted_again.insert(key);
                }
            },
            Some(key) = under_way.next() => {
                busy.remove(&key);
                if wanted_again.remove(&key) {
                    driver.hub.want(key);
                }
            }
        }
    }
}

/// Proposes to assign the ready tasks of one action, if it has any and somebody has a slot.
async fn assign(driver: &Driver, key: ActionKey) -> ActionKey {
    let (namespace, action) = key.clone();
    let has_ready = driver
        .context
        .gateway
        .read_here(move |reader| view::has_ready(reader, &namespace, &action));
    if !has_ready.unwrap_or(false) || !driver.hub.has_slot(&key) {
        return key;
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
        Ok(Reply::TasksAssigned { count }) if count > 0 => driver.hub.want(key.clone()),
        // Every slot was in another entry, or no offer has the labels that the tasks ask for. The
        // slots of this very entry come back and make the action wanted: without a pause, tasks
        // that nobody may take would be proposed again as fast as the log is written.
        Ok(_) => sleep(RETRY_DELAY).await,
        Err(refusal) => {
            tracing::debug!(%refusal, "ready tasks were not assigned");
            sleep(RETRY_DELAY).await;
            driver.hub.want(key.clone());
        }
    }
    key
}
