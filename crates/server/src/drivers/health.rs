//! Embedded workers of nodes that died: their leases are freed without waiting for their end (A4).

use super::Driver;
use crate::workers::WorkerKey;
use flotilla_engine::limits::LEADER_GRACE_MS;
use flotilla_engine::{Body, Command, ReleaseWorker, view};
use std::time::Duration;
use tokio::time::sleep;

/// How long an embedded worker may be without a poll: a stream that broke is opened again sooner.
const ABSENCE_MAX: Duration = Duration::from_secs(3);

/// Looks once when the grace of the new term is over, then after each departure.
pub(super) async fn drive(driver: &Driver) {
    sleep(Duration::from_millis(LEADER_GRACE_MS)).await;
    loop {
        release_absent(driver).await;
        drop(driver.hub.departed().await);
        sleep(ABSENCE_MAX).await;
    }
}

async fn release_absent(driver: &Driver) {
    let node = driver.context.node;
    let embedded = driver
        .context
        .gateway
        .read_here(move |reader| view::workers_of_other_nodes(reader, node));
    for (namespace, worker, owner, incarnation) in embedded.unwrap_or_default() {
        let key = WorkerKey {
            namespace: namespace.clone(),
            worker: worker.clone(),
        };
        if driver.hub.is_open(&key) {
            continue;
        }
        tracing::info!(node = owner.0, %worker, "the tasks of a lost node are freed");
        let body = Body::ReleaseWorker(ReleaseWorker {
            worker_id: worker,
            incarnation,
        });
        let command = Command::new(namespace, body);
        if let Err(refusal) = driver
            .context
            .gateway
            .submit(command, Driver::deadline())
            .await
        {
            tracing::debug!(%refusal, "a lost worker's tasks were not freed");
        }
    }
}
