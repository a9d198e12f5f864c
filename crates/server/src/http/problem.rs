//! Refusals as HTTP responses.

use crate::errors::Refusal;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flotilla_api::v1;
use serde_json::json;
use std::fmt;
use tonic::Code;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why a request was refused, with its HTTP status.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    refusal: Refusal,
}

impl Problem {
    /// A refusal whose HTTP status does not follow from its code.
    pub(super) fn new(status: StatusCode, refusal: Refusal) -> Self {
        Self { status, refusal }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal.fmt(formatter)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = status(Code::from_i32(refusal.item_error().code));
        Self { status, refusal }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let v1::ItemError {
            reason,
            message,
            hint,
            retry_delay_ms,
            ..
        } = self.refusal.item_error();
        let hint = Some(hint).filter(|hint| !hint.is_empty());
        let body = json!({"error": {"code": reason, "message": message, "hint": hint}});
        let mut response = json_response(self.status, body.to_string());
        let headers = response.headers_mut();
        if retry_delay_ms > 0 {
            headers.insert(RETRY_AFTER, retry_delay_ms.div_ceil(1_000).into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A response with a JSON body.
pub(super) fn json_response(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::FailedPrecondition | Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::ServerCode;
    use axum::body::to_bytes;
    use flotilla_engine::RejectionCode;

    async fn said(problem: Problem) -> (u16, String) {
        let response = problem.into_response();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_problem_says_the_same_as_the_command_line() {
        let refusal = Refusal::new(RejectionCode::RunNotFound, "expected a run").with_hint("look");
        let expected =
            r#"{"error":{"code":"run_not_found","hint":"look","message":"expected a run"}}"#;
        assert_eq!(said(refusal.into()).await, (404, expected.to_owned()));
    }

    #[tokio::test]
    async fn an_overloaded_node_says_when_to_retry_and_a_missing_token_which_scheme_to_use() {
        let response = Problem::from(Refusal::overloaded("too much")).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[RETRY_AFTER], "1");
        let refusal = Refusal::new(ServerCode::TokenMissing, "expected a token");
        let response = Problem::from(refusal).into_response();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
    }
}
