//! HTTP: the API for clients without gRPC, reports on accepted tasks (W38), probes and metrics.

mod api;
mod connections;
mod keep_connection;
mod probes;
mod problem;
mod reference;
mod report;
mod set_request_id;

pub use api::openapi;
pub(crate) use connections::{serve, serve_start};
pub use probes::{LIVE_PATH, METRICS_PATH, READY_PATH};

use self::problem::Problem;
use crate::context::Context;
use crate::errors::{Refusal, ServerCode};
use crate::server::Intake;
use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use std::sync::Arc;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;

/// The URL of this node at which a task's outcome is reported.
pub(crate) fn report_url(context: &Context, task_id: &str) -> String {
    let scheme = if context.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let address = &context.http_address;
    format!("{scheme}://{address}/v1/tasks/{task_id}/report")
}

/// What HTTP serves.
pub(crate) struct HttpServices {
    pub(crate) context: Arc<Context>,
    /// The services of gRPC, which serve the API too.
    pub(crate) services: Routes,
    /// How their requests arrive.
    pub(crate) intake: Intake,
    /// The calls in progress.
    pub(crate) calls: TaskTracker,
}

/// The node's routes.
fn router(served: &HttpServices) -> Router {
    watching()
        .merge(api::router(served))
        .route("/v1/tasks/{id}/report", post(report::report))
        .route("/v1/openapi.json", get(reference::openapi))
        .route("/v1/errors", get(reference::errors))
        .route("/v1/errors/{code}", get(reference::error))
        .fallback(async || Problem::from(path_not_found()))
        .method_not_allowed_fallback(async || wrong_method())
        .layer(from_fn(set_request_id::set_request_id))
        .layer(from_fn(keep_connection::keep_connection))
        .with_state(served.context.clone())
}

/// The routes of supervisors and Prometheus.
fn watching() -> Router<Arc<Context>> {
    Router::new()
        .route(LIVE_PATH, get(probes::live))
        .route(READY_PATH, get(probes::ready))
        .route(METRICS_PATH, get(probes::metrics))
}

/// As the node's routes, at the port of operators.
pub(crate) fn admin_router(context: Arc<Context>) -> Router {
    watching()
        .fallback(async || admin_missing())
        .with_state(context)
}

/// The routes of a node whose replica has not started yet: it is live, and not ready.
fn starting_router() -> Router {
    Router::new()
        .route(LIVE_PATH, get(probes::starting))
        .fallback(async || starting())
}

fn starting() -> Problem {
    let message = "expected the node to serve, but it is still starting";
    let refusal = Refusal::new(ServerCode::NodeCatchingUp, message)
        .with_hint("it may be receiving its state from another member; see the node's log");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, refusal)
}

/// The refusal of an unknown path.
fn path_not_found() -> Refusal {
    let message = "expected a path of the API, such as /v1/namespaces/default/workflows, or /livez, /readyz or /metrics, \
                   but the path does not exist";
    Refusal::new(ServerCode::PathNotFound, message)
        .with_hint("paths have no slash at their end; the manual lists all of them")
}

fn admin_missing() -> Problem {
    let message = "expected /livez, /readyz or /metrics, but the path does not exist";
    Refusal::new(ServerCode::PathNotFound, message).into()
}

fn wrong_method() -> Problem {
    let message = "expected a method that the path allows, but it does not allow this one";
    Refusal::new(ServerCode::MethodNotAllowed, message)
        .with_hint("the header `Allow` of the response lists the methods")
        .into()
}
