//! What is served over plain HTTP: the report of an accepted task (W38), for whoever has no gRPC, and what
//! those ask who watch over the node.

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

/// Where a task's outcome is reported at this node.
pub(crate) fn report_url(context: &Context, task_id: &str) -> String {
    let scheme = if context.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let address = &context.http_address;
    format!("{scheme}://{address}/v1/tasks/{task_id}/report")
}

/// The node's paths.
fn router(context: Arc<Context>) -> Router {
    Router::new()
        .route("/v1/tasks/{id}/report", post(report::report))
        .route(LIVE_PATH, get(probes::live))
        .route(READY_PATH, get(probes::ready))
        .route(METRICS_PATH, get(probes::metrics))
        .fallback(async || missing())
        .method_not_allowed_fallback(async || wrong_method())
        .with_state(context)
}

/// The paths of a node whose replica has not started yet: it lives, and can do nothing.
fn starting_router() -> Router {
    Router::new()
        .route(LIVE_PATH, get(probes::starting))
        .fallback(async || starting())
}

fn starting() -> Problem {
    let message = "expected the node to serve, but it is still starting";
    let refusal = Refusal::new(ServerCode::NotReadable, message)
        .with_hint("it may be taking its state from another member; the node's log says so");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, refusal)
}

fn missing() -> Problem {
    let message =
        "expected /v1/tasks/ID/report, /livez, /readyz or /metrics, but the path is another one";
    Refusal::new(ServerCode::PathNotFound, message).into()
}

fn wrong_method() -> Problem {
    let message = "expected POST for a report, else GET, but the method is another one";
    let refusal = Refusal::new(ServerCode::MethodNotAllowed, message);
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, refusal)
}
