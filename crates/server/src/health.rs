//! The standard gRPC health service: a node serves while `/readyz` reports it ready.

use crate::context::Context;
use crate::readiness;
use flotilla_api::v1::action_service_server::SERVICE_NAME as ACTION;
use flotilla_api::v1::cluster_service_server::SERVICE_NAME as CLUSTER;
use flotilla_api::v1::worker_service_server::SERVICE_NAME as WORKER;
use flotilla_api::v1::workflow_service_server::SERVICE_NAME as WORKFLOW;
use flotilla_replica::Leadership;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// The health protocol's name for the whole node.
const NODE: &str = "";
/// The interval of readiness checks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Reports the node's health. Ends with `context.shutdown` and reports that the node no longer
/// serves.
pub(crate) fn start(context: Arc<Context>, reporter: HealthReporter) -> JoinHandle<()> {
    tokio::spawn(async move {
        let shutdown = context.shutdown.clone();
        tokio::select! {
            () = follow(&context, &reporter) => {}
            () = shutdown.cancelled() => {}
        }
        report(&reporter, false).await;
    })
}

/// Follows leadership; returns when the replica has ended.
async fn follow(context: &Context, reporter: &HealthReporter) {
    let replica = context.node_gateway.home().replica();
    let mut leadership = replica.leadership();
    let (mut readable, mut fatal) = (replica.readable(), replica.fatal());
    let mut drained = replica.drained();
    // The health service works without a leader too.
    reporter
        .set_service_status(CLUSTER, ServingStatus::Serving)
        .await;
    let mut known = Leadership::default();
    let mut reported = None;
    loop {
        readable.mark_unchanged();
        fatal.mark_unchanged();
        drained.mark_unchanged();
        let now = leadership.borrow_and_update().clone();
        context.metrics.leadership_changed(&known, &now);
        known = now;
        let is_ready = readiness::check(context).is_ok();
        // Watchers receive changes only.
        if reported.replace(is_ready) != Some(is_ready) {
            report(reporter, is_ready).await;
        }
        let changed = tokio::select! {
            // No event announces that a leader has lost its quorum.
            () = sleep(LOOK_INTERVAL) => Ok(()),
            changed = leadership.changed() => changed,
            changed = readable.changed() => changed,
            changed = fatal.changed() => changed,
            changed = drained.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

async fn report(reporter: &HealthReporter, is_serving: bool) {
    let status = if is_serving {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    };
    for service in [NODE, WORKFLOW, ACTION, WORKER] {
        reporter.set_service_status(service, status).await;
    }
}
