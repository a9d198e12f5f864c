//! The HTTP API: every gRPC call that is not a stream, with JSON (H1, H2).
//!
//! The options of a method in `proto/` define its routes. The path, the query and the body become a gRPC request, which the
//! services in this process serve. Their response becomes JSON.

mod call;
mod etag;
mod events;
mod idempotency_key;
mod openapi;
mod origin;
mod refusals;
mod route;
mod transcoder;

pub use self::openapi::openapi;

use self::route::Route;
use self::transcoder::Transcoder;
use super::problem::Problem;
use super::{HttpServices, path_not_found};
use crate::context::Context;
use axum::Router;
use axum::body::Body as HttpBody;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::Response;
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, on};
use std::convert::Infallible;
use std::sync::Arc;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tower::ServiceBuilder;
use tower::util::BoxCloneSyncService;

/// The media type of JSON.
const JSON: &str = "application/json";

/// The variables of the path, unless they are not UTF-8.
type PathParameters = Result<RawPathParams, RawPathParamsRejection>;

/// Serves gRPC calls in this process.
type Services = BoxCloneSyncService<Request<HttpBody>, Response<Body>, Infallible>;

/// What all routes share.
#[derive(Clone)]
struct Api {
    context: Arc<Context>,
    /// Serves calls with JSON.
    services: Services,
    /// Serves calls whose response is a stream, with messages of gRPC.
    streams: Services,
    calls: TaskTracker,
}

/// The routes of the API.
pub(super) fn router(served: &HttpServices) -> Router<Arc<Context>> {
    let context = &served.context;
    let services = ServiceBuilder::new()
        .layer(served.intake.layers())
        .service(Transcoder::new(context.clone(), served.services.clone()));
    let streams = ServiceBuilder::new()
        .layer(served.intake.layers())
        .service(served.services.clone());
    let api = Api {
        context: context.clone(),
        services: BoxCloneSyncService::new(services),
        streams: BoxCloneSyncService::new(streams),
        calls: served.calls.clone(),
    };
    let routes = Route::all().into_iter().map(Arc::new);
    routes.fold(Router::new(), |router, route| {
        let (api, pattern) = (api.clone(), route.pattern());
        let filter = MethodFilter::try_from(route.method.clone());
        // Never fails: axum has a filter for each method that a route can have.
        let Ok(filter) = filter else { return router };
        let handler = async move |parameters: PathParameters, request: Request| match parameters {
            Ok(parameters) => api.call(&route, &parameters, request).await,
            Err(_) => Problem::from(path_not_found()).into_response(),
        };
        router.route(&pattern, on(filter, handler))
    })
}
