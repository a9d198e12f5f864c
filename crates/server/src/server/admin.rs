//! Serves operators at a separate port: probes, metrics and the calls about the cluster. The load of clients takes neither
//! its connections nor its memory.

use super::transport::{Intake, KEEPALIVE, Serving};
use crate::context::Context;
use crate::http;
use crate::limits::{ADMIN_MESSAGE_BYTES_MAX, CONNECTION_STREAMS_MAX};
use crate::services::Clusters;
use axum::Router;
use flotilla_api::v1::cluster_service_server::{ClusterServiceServer, SERVICE_NAME};
use flotilla_replica::{Arrivals, Caller};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tonic::service::{InterceptorLayer, Routes};
use tonic::{Request, Status};
use tower::Layer;

/// Serves operators until `shutdown`, which is later than `context.shutdown`: a stopping node still answers probes.
pub(super) fn serve(
    context: &Arc<Context>,
    arriving: Arrivals,
    shutdown: CancellationToken,
) -> Serving {
    let server = tonic::transport::Server::builder()
        .accept_http1(true)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .max_concurrent_streams(CONNECTION_STREAMS_MAX)
        .add_routes(Routes::from(router(context)))
        .serve_with_incoming_shutdown(arriving, shutdown.cancelled_owned());
    tokio::spawn(server)
}

fn router(context: &Arc<Context>) -> Router {
    let memory = &context.memory.admin;
    let layers = Intake::new(context, memory, memory).layers();
    let needs_certificate = context.tls.is_some();
    let check = InterceptorLayer::new(move |request| check_caller(request, needs_certificate));
    let clusters = ClusterServiceServer::new(Clusters::new(context.clone()))
        .max_decoding_message_size(ADMIN_MESSAGE_BYTES_MAX);
    http::admin_router(context.clone()).route_service(
        &format!("/{SERVICE_NAME}/{{*call}}"),
        check.layer(layers.layer(clusters)),
    )
}

/// Rejects a call without a certificate: only probes and metrics need none.
fn check_caller(request: Request<()>, needs_certificate: bool) -> Result<Request<()>, Status> {
    let caller = request.extensions().get::<Caller>();
    if !needs_certificate || caller.is_some_and(Caller::has_certificate) {
        return Ok(request);
    }
    let text = "expected a client certificate, but the caller presented none";
    Err(Status::unauthenticated(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_replica::CallerCertificate;
    use tonic::Code;

    struct AnyCertificate;

    impl CallerCertificate for AnyCertificate {
        fn is_valid_for(&self, _: &str) -> bool {
            false
        }
    }

    fn check(caller: Caller, needs_certificate: bool) -> Result<(), Code> {
        let mut request = Request::new(());
        request.extensions_mut().insert(caller);
        let checked = check_caller(request, needs_certificate);
        checked.map(drop).map_err(|status| status.code())
    }

    #[test]
    fn calls_need_a_certificate_if_the_node_has_one() {
        let certified = Caller::with_certificate(Arc::new(AnyCertificate));
        assert_eq!(check(Caller::default(), true), Err(Code::Unauthenticated));
        assert_eq!(check(certified, true), Ok(()));
        assert_eq!(check(Caller::default(), false), Ok(()));
    }
}
