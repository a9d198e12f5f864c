//! Serves operators at a separate port: probes, metrics and the calls about the cluster. The load of clients takes neither
//! its connections nor its memory.

use super::transport::Intake;
use crate::connections::{Http2Bounds, serve_http};
use crate::context::Context;
use crate::http;
use crate::limits::{
    ADMIN_CONNECTION_WINDOW_BYTES, ADMIN_MESSAGE_BYTES_MAX, ADMIN_STREAM_WINDOW_BYTES,
    ADMIN_STREAMS_MAX,
};
use crate::only_grpc::OnlyGrpc;
use crate::services::Clusters;
use axum::Router;
use axum::extract::Request as HttpRequest;
use flotilla_api::v1::cluster_service_server::{ClusterServiceServer, SERVICE_NAME};
use flotilla_replica::{Accepted, Arrivals};
use futures::StreamExt;
use hyper::body::Incoming;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::server::Connected;
use tower::Layer;
use tower::util::MapRequest;

const HTTP_2: Http2Bounds = Http2Bounds {
    streams_max: ADMIN_STREAMS_MAX,
    stream_window_bytes: ADMIN_STREAM_WINDOW_BYTES,
    connection_window_bytes: ADMIN_CONNECTION_WINDOW_BYTES,
};

/// Serves operators until `shutdown`, which is later than `context.shutdown`: a stopping node still answers probes. Does
/// not use tonic's server, which gives each connection over HTTP/1 a buffer of 400 KiB.
pub(super) fn serve(
    context: &Arc<Context>,
    arriving: Arrivals,
    shutdown: CancellationToken,
) -> JoinHandle<()> {
    let router = router(context);
    tokio::spawn(async move {
        let connections = TaskTracker::new();
        let mut arriving = arriving
            .take_until(shutdown.clone().cancelled_owned())
            .boxed();
        while let Some(arrived) = arriving.next().await {
            if let Ok(accepted) = arrived {
                connections.spawn(serve_one(accepted, router.clone(), shutdown.clone()));
            }
        }
        drop(arriving);
        connections.close();
        connections.wait().await;
    })
}

/// Serves one connection.
async fn serve_one(accepted: Accepted, router: Router, shutdown: CancellationToken) {
    let caller = accepted.connect_info();
    let service = MapRequest::new(router, move |mut request: HttpRequest<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        request
    });
    serve_http(accepted, service, HTTP_2, &shutdown).await;
}

fn router(context: &Arc<Context>) -> Router {
    let memory = &context.memory.admin;
    let layers = (OnlyGrpc, Intake::new(context, memory, memory).layers());
    let clusters = ClusterServiceServer::new(Clusters::new(context.clone()))
        .max_decoding_message_size(ADMIN_MESSAGE_BYTES_MAX);
    http::admin_router(context.clone()).route_service(
        &format!("/{SERVICE_NAME}/{{*call}}"),
        layers.layer(clusters),
    )
}
