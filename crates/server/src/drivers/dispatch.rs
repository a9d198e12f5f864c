//! Ready tasks meet free slots.
//!
//! Most tasks are given to an offer in the very turn that makes them ready. The rest wait in the
//! queue; this driver proposes to assign them whenever an action may have both a ready task and a
//! free slot. The hub says when that is; a task that no open poll fits waits without being asked
//! about until a poll opens, slots come free or another task becomes ready.

use super::Driver;
use super::backoff::Backoff;
use crate::errors::Refusal;
use crate::workers::{ActionKey, Looked};
use flotilla_engine::{AssignTasks, Command, view};
use futures::stream::{FuturesUnordered, StreamExt};

/// Assigns as long as the node leads: one proposal for an action at a time.
pub(super) async fn drive(driver: &Driver) {
    driver.hub.forget_looks();
    let mut looks = FuturesUnordered::new();
    loop {
        tokio::select! {
            due = driver.hub.due() => looks.extend(due.into_iter().map(|key| look(driver, key))),
            Some(()) = looks.next() => {}
        }
    }
}

/// Looks at one action, and has its ready tasks assigned if there are any that fit.
async fn look(driver: &Driver, key: ActionKey) {
    let mut backoff = Backoff::default();
    loop {
        match assign(driver, &key).await {
            Ok(Some(looked)) => return driver.hub.looked(&key, looked),
            // The slots were in other entries, or belong to workers that take no tasks although they
            // have a poll. Without growing pauses these would be asked about as fast as the log is
            // written.
            Ok(None) => {}
            Err(refusal) => tracing::debug!(%refusal, "ready tasks were not assigned"),
        }
        backoff.wait().await;
    }
}

/// What a look came to; `None` when a fitting task was to be assigned and none was.
async fn assign(driver: &Driver, key: &ActionKey) -> Result<Option<Looked>, Refusal> {
    let (namespace, action) = key;
    let workers = driver.hub.free_labels(key);
    let found = driver.context.gateway.read_here(|reader| {
        if !view::has_ready(reader, namespace, action)? {
            return Ok(Some(Looked::NoneReady));
        }
        let is_fitting = view::has_ready_for(reader, namespace, action, &workers)?;
        Ok((!is_fitting).then_some(Looked::NoneFitting))
    })?;
    if found.is_some() {
        return Ok(found);
    }
    let action = action.clone();
    let command = Command::new(namespace.clone(), AssignTasks { action });
    let assigned = driver.submit(command).await?;
    Ok((assigned.count > 0).then_some(Looked::MayBeLeft))
}
