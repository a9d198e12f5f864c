//! The descriptions of the API and its error codes. They need no credential (H4).

use super::api;
use super::problem::{Problem, json_response};
use crate::errors::{ErrorCode, Refusal, ServerCode};
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::LazyLock;

static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| api::openapi().to_string().into());
static ERRORS: LazyLock<Bytes> = LazyLock::new(|| {
    let codes: Vec<Value> = ErrorCode::all().iter().map(code_json).collect();
    json!({"items": codes}).to_string().into()
});

/// `/v1/openapi.json`: the description of the API (H16).
pub(super) async fn openapi() -> Response {
    json_response(StatusCode::OK, OPENAPI.clone())
}

/// `/v1/errors`: all error codes.
pub(super) async fn errors() -> Response {
    json_response(StatusCode::OK, ERRORS.clone())
}

/// `/v1/errors/CODE`: what the code means.
pub(super) async fn error(Path(name): Path<String>) -> Result<Response, Problem> {
    let codes = ErrorCode::all();
    let code = codes.iter().find(|code| code.name == name);
    let code = code.ok_or_else(|| {
        let text = format!("expected an error code, but `{name}` is not one");
        Refusal::new(ServerCode::PathNotFound, text).with_hint("/v1/errors lists all codes")
    })?;
    Ok(json_response(StatusCode::OK, code_json(code).to_string()))
}

fn code_json(code: &ErrorCode) -> Value {
    json!({
        "code": code.name,
        "status": code.http_status,
        "grpc_status": format!("{:?}", code.status),
        "meaning": code.meaning,
        "hint": code.hint,
    })
}
