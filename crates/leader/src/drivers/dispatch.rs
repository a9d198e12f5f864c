//! The dispatch driver: assigns ready tasks to free slots.
//!
//! Most tasks are assigned to an offer in the turn that makes them ready. The rest wait in the
//! queue; this driver proposes to assign them whenever an action may have both a ready task and a
//! free slot, as the hub reports. A task that no open poll fits is not scanned for until a poll
//! opens, slots become free or another task becomes ready.

use super::Driver;
use super::backoff::Backoff;
use crate::error::Error;
use crate::hub::{ActionKey, ScanResult};
use flotilla_engine::{AssignTasks, Command, view};
use futures::stream::{FuturesUnordered, StreamExt};

/// Assigns tasks while the node leads, with one proposal per action at a time.
pub(super) async fn drive(driver: &Driver) {
    driver.hub().forget_scans();
    let mut looks = FuturesUnordered::new();
    loop {
        tokio::select! {
            due = driver.hub().due() => looks.extend(due.into_iter().map(|key| scan_action(driver, key))),
            Some(()) = looks.next() => {}
        }
    }
}

/// Scans one action and proposes to assign its ready tasks if any fit.
async fn scan_action(driver: &Driver, key: ActionKey) {
    let mut backoff = Backoff::default();
    loop {
        match assign(driver, &key).await {
            Ok(Some(scan_result)) => return driver.hub().record_scan(&key, scan_result),
            // The slots were in other entries, or belong to workers that have a poll and take no
            // tasks. Without a growing backoff, this loop would run as fast as the log is written.
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "ready tasks were not assigned"),
        }
        backoff.wait().await;
    }
}

/// The result of the scan; `None` if a fitting task was to be assigned and none was.
async fn assign(driver: &Driver, key: &ActionKey) -> Result<Option<ScanResult>, Error> {
    let (namespace, action) = key;
    let workers = driver.hub().free_labels(key);
    let found = driver.read_once(|reader| {
        if !view::has_ready(reader, namespace, action)? {
            return Ok(Some(ScanResult::NoneReady));
        }
        let is_fitting = view::has_ready_for(reader, namespace, action, &workers)?;
        Ok((!is_fitting).then_some(ScanResult::NoneFitting))
    })?;
    if found.is_some() {
        return Ok(found);
    }
    let action = action.clone();
    let command = Command::new(namespace.clone(), AssignTasks { action });
    let assigned = driver.submit(command).await?;
    Ok((assigned.count > 0).then_some(ScanResult::MayBeLeft))
}
