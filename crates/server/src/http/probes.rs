//! The probes of supervisors, and the node's metrics.

use super::problem::{Problem, json_response};
use crate::access::CallContext;
use crate::context::Context;
use crate::errors::Refusal;
use crate::metrics;
use crate::readiness;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use flotilla_replica::Caller;
use serde_json::json;
use std::sync::Arc;
use tonic::metadata::MetadataMap;

/// The liveness probe: whether the process can continue.
pub const LIVE_PATH: &str = "/livez";
/// The readiness probe: whether the node may serve.
pub const READY_PATH: &str = "/readyz";
/// The metrics that Prometheus scrapes.
pub const METRICS_PATH: &str = "/metrics";

/// `/livez`: whether the process can continue.
pub(super) async fn live(State(context): State<Arc<Context>>) -> Result<Response, Problem> {
    readiness::check_alive(&context).map_err(unavailable)?;
    Ok(status("live"))
}

/// `/livez` while the node starts, which may take any time.
pub(super) async fn starting() -> Response {
    status("live")
}

/// `/readyz`: whether the node may serve, and what an operator should change about it.
pub(super) async fn ready(State(context): State<Arc<Context>>) -> Result<Response, Problem> {
    readiness::check(&context).map_err(unavailable)?;
    let warnings = readiness::warnings(&context);
    if warnings.is_empty() {
        return Ok(status("ready"));
    }
    let body = json!({"status": "ready", "warnings": warnings});
    Ok(json_response(StatusCode::OK, body.to_string()))
}

/// `/metrics`, as Prometheus reads them.
pub(super) async fn metrics(
    State(context): State<Arc<Context>>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let metadata = MetadataMap::from_headers(headers);
    let caller = caller.as_deref();
    CallContext::check_reader_of_metrics(&context, (&metadata, caller)).await?;
    let page = metrics::scrape(context).await.ok_or_else(|| {
        let message = "expected to read the metrics, but the reader's thread failed";
        Refusal::internal(message.to_owned())
    })?;
    let mut response = Response::new(Body::from(page));
    let content_type = HeaderValue::from_static(metrics::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

fn status(word: &str) -> Response {
    json_response(StatusCode::OK, format!("{{\"status\":\"{word}\"}}"))
}

/// The same status for every reason: supervisors read only the status.
fn unavailable(refusal: Refusal) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, refusal)
}
