//! The HTTP endpoints: reports on accepted tasks (W38) for clients without gRPC, probes and
//! metrics.

mod connections;
mod probes;
mod problem;
mod report;

pub(crate) use connections::{serve, serve_start};
pub use probes::{LIVE_PATH, METRICS_PATH, READY_PATH};

use self::problem::Problem;
use crate::context::Context;
use crate::errors::{Refusal, ServerCode};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use std::sync::Arc;

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

/// The node's routes.
fn router(context: Arc<Context>) -> Router {
    watching()
        .route("/v1/tasks/{id}/report", post(report::report))
        .fallback(async || missing())
        .method_not_allowed_fallback(async || wrong_method())
        .with_state(context)
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

fn missing() -> Problem {
    let message =
        "expected /v1/tasks/ID/report, /livez, /readyz or /metrics, but the path is another one";
    Refusal::new(ServerCode::PathNotFound, message).into()
}

fn admin_missing() -> Problem {
    let message = "expected /livez, /readyz or /metrics, but the path is another one";
    Refusal::new(ServerCode::PathNotFound, message).into()
}

fn wrong_method() -> Problem {
    let message = "expected POST for a report, otherwise GET, but the method is another one";
    let refusal = Refusal::new(ServerCode::MethodNotAllowed, message);
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, refusal)
}
