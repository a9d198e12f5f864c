//! The health driver: takes the tasks of embedded workers whose nodes died, before their leases
//! end (A4).
//!
//! A node counts as dead when its worker has had no open poll at the leader for a while. The clock
//! starts when that worker lost its poll, not when any other did: otherwise a live worker that is
//! just reconnecting would lose its tasks.

use super::Driver;
use super::backoff::Backoff;
use crate::error::Error;
use crate::hub::WorkerKey;
use crate::limits::ABSENCE_MAX;
use flotilla_engine::limits::LEADER_GRACE_MS;
use flotilla_engine::{Body, Departure, ReleaseWorker, view};
use futures::stream::{FuturesUnordered, StreamExt};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Takes back the tasks of absent workers: those that are absent when the new term's grace ends, then
/// those that leave.
pub(super) async fn drive(driver: &Driver) {
    let began = Instant::now();
    sleep(Duration::from_millis(LEADER_GRACE_MS)).await;
    let expected = read_embedded(driver).await;
    driver.hub().expect(expected, began);
    let mut releases = FuturesUnordered::new();
    loop {
        tokio::select! {
            absent = driver.hub().absent(ABSENCE_MAX) => {
                releases.extend(absent.into_iter().map(|worker| release(driver, worker)));
            }
            Some(()) = releases.next() => {}
        }
    }
}

/// The embedded workers of other nodes.
async fn read_embedded(driver: &Driver) -> Vec<WorkerKey> {
    let node = driver.context.replica.node_id();
    let embedded = driver
        .read(|reader| view::workers_of_other_nodes(reader, node))
        .await;
    let keys = embedded.into_iter();
    keys.map(|(namespace, worker, ..)| WorkerKey { namespace, worker })
        .collect()
}

/// Takes back the tasks of a worker, until that succeeds or the worker is back.
async fn release(driver: &Driver, key: WorkerKey) {
    let mut backoff = Backoff::default();
    while !driver.hub().is_open(&key) {
        match try_release(driver, &key).await {
            Err(error) if error.may_succeed_later() => {
                tracing::debug!(%error, "a lost worker's tasks are not returned yet");
                backoff.wait().await;
            }
            // Usually it is back, or it deregistered and its leases ended with that.
            Err(error) => {
                return tracing::debug!(%error, "a lost worker's tasks were not returned");
            }
            Ok(()) => return,
        }
    }
}

async fn try_release(driver: &Driver, key: &WorkerKey) -> Result<(), Error> {
    let WorkerKey { namespace, worker } = key;
    let known = driver.read_once(|reader| view::worker(reader, namespace, worker))?;
    let Some(known) = known.filter(|known| known.activity.status.is_healthy()) else {
        return Ok(());
    };
    // This node is alive.
    let Some(node) = known
        .record
        .node
        .filter(|node| *node != driver.context.replica.node_id())
    else {
        return Ok(());
    };
    let body = Body::ReleaseWorker(ReleaseWorker {
        worker_id: worker.clone(),
        incarnation: known.record.incarnation,
        departure: Departure::Lost {
            last_heartbeat_at_ms: known.activity.last_heartbeat_at_ms,
        },
    });
    driver.submit(body.into_command(namespace.clone())).await?;
    tracing::info!(node = node.0, %worker, "the tasks of a lost node were taken back");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StillNode;
    use flotilla_engine::ids::{Namespace, WorkerId};
    use futures::poll;
    use std::pin::pin;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_release_that_finds_no_leader_is_tried_again_until_the_worker_is_back() {
        let node = StillNode::start_without_quorum().await;
        let driver = node.driver();
        driver.hub().begin_term();
        let key = WorkerKey {
            namespace: Namespace::default_namespace(),
            worker: WorkerId::new("node-2").unwrap(),
        };
        let error = try_release(&driver, &key).await.unwrap_err();
        assert!(error.may_succeed_later(), "{error}");
        let mut releasing = pin!(release(&driver, key.clone()));
        assert!(poll!(&mut releasing).is_pending(), "it waits to try again");
        let _poll = driver.hub().open_for_test(key);
        releasing.await;
    }
}
