//! The standard health service: a node serves while it knows a leader and can read the state.

use crate::context::Context;
use flotilla_api::v1::action_service_server::SERVICE_NAME as ACTION;
use flotilla_api::v1::cluster_service_server::SERVICE_NAME as CLUSTER;
use flotilla_api::v1::worker_service_server::SERVICE_NAME as WORKER;
use flotilla_api::v1::workflow_service_server::SERVICE_NAME as WORKFLOW;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// The node as a whole, as the health protocol names it.
const NODE: &str = "";

/// Reports the node's health. Ends with `context.shutdown`, when the node does not serve any more.
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
    let replica = context.gateway.replica();
    let mut leadership = replica.leadership();
    let mut readable = replica.readable();
    // It answers without a leader too.
    reporter
        .set_service_status(CLUSTER, ServingStatus::Serving)
        .await;
    loop {
        let has_leader = leadership.borrow_and_update().leader.is_some();
        let is_readable = *readable.borrow_and_update();
        report(reporter, has_leader && is_readable).await;
        let changed = tokio::select! {
            changed = leadership.changed() => changed,
            changed = readable.changed() => changed,
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
