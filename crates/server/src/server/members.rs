//! Serves the other members at the peer port: the calls that they make for workers.

use super::transport::Intake;
use crate::context::Context;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::members::ForwardedActor;
use crate::workers::Workers;
use flotilla_api::v1::worker_service_server::{SERVICE_NAME, WorkerServiceServer};
use flotilla_leader::Hub;
use std::sync::Arc;
use tonic::service::{InterceptorLayer, Routes};
use tower::Layer;

/// The methods of the worker service that members call.
const METHODS: [&str; 2] = ["Await", "Stream"];

/// The services for the other members.
pub(super) fn routes(context: &Arc<Context>, hub: &Arc<Hub>, intake: &Intake) -> Routes {
    let workers = WorkerServiceServer::new(Workers::new(context.clone(), hub.clone()))
        .max_decoding_message_size(MESSAGE_BYTES_MAX);
    let workers = InterceptorLayer::new(ForwardedActor::take).layer(intake.layers().layer(workers));
    let mut router = Routes::default().into_axum_router();
    for method in METHODS {
        router = router.route_service(&format!("/{SERVICE_NAME}/{method}"), workers.clone());
    }
    Routes::from(router)
}
