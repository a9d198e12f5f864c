//! Refusals as HTTP responses: problem details (RFC 9457, H6).

use crate::errors::{
    CLUSTER_MS, ErrorCode, HINT, QUOTA_DIMENSION, QUOTA_LIMIT, QUOTA_SCOPE, QUOTA_USED, Refusal,
    http_status,
};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flotilla_engine::RejectionCode;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::StatusExt;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
/// The prefix of the URNs that identify error codes.
const TYPE_PREFIX: &str = "urn:problem-type:flotilla:";

/// The rejections of a change whose condition is not met.
const PRECONDITIONS: [RejectionCode; 3] = [
    RejectionCode::KeyExists,
    RejectionCode::KeyVersionMismatch,
    RejectionCode::QuotaVersionMismatch,
];

/// The meanings of the error codes.
static MEANINGS: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
    let codes = ErrorCode::all().into_iter();
    codes.map(|code| (code.name, code.meaning)).collect()
});

/// Why a request was refused, with its HTTP status.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    status: StatusCode,
    code: String,
    message: String,
    hint: Option<String>,
    retry_delay: Option<Duration>,
    /// The cluster's time, if the caller's clock may be the cause. In milliseconds since the Unix epoch.
    cluster_ms: Option<u64>,
    /// The quota that does not suffice (X40).
    quota: Option<QuotaMembers>,
    /// Fields, or places in a definition's text, each with what is wrong there.
    violations: Vec<(String, String)>,
}

/// The body of a problem.
#[derive(Serialize)]
struct ProblemBody<'a> {
    #[serde(rename = "type")]
    problem_type: String,
    title: Option<&'static str>,
    status: u16,
    detail: &'a str,
    instance: Option<&'a str>,
    code: &'a str,
    hint: Option<&'a str>,
    errors: Vec<Map<String, Value>>,
    retry_after_ms: Option<u64>,
    cluster_ms: Option<u64>,
    #[serde(flatten)]
    quota: Option<&'a QuotaMembers>,
    error: PrintedError<'a>,
}

/// What a problem says about a quota that does not suffice.
#[derive(Clone, Debug, Serialize)]
struct QuotaMembers {
    dimension: String,
    limit: u64,
    used: u64,
    scope: String,
}

/// The error as the command line prints it.
#[derive(Serialize)]
struct PrintedError<'a> {
    code: &'a str,
    message: &'a str,
    hint: Option<&'a str>,
}

impl Problem {
    /// A refusal whose HTTP status does not follow from its code.
    pub(super) fn new(status: StatusCode, refusal: Refusal) -> Self {
        Self {
            status,
            ..Self::from(refusal)
        }
    }

    /// The problem of a conditional call (H10).
    pub(super) fn of_conditional_call(self) -> Self {
        let is_condition = PRECONDITIONS.iter().any(|code| code.as_str() == self.code);
        let status = match is_condition {
            true => StatusCode::PRECONDITION_FAILED,
            false => self.status,
        };
        Self { status, ..self }
    }

    /// How long the caller should wait before a retry.
    fn retry_after_ms(&self) -> Option<u64> {
        let delay = self.retry_delay?;
        Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
    }

    /// The body of the response to the request with this id.
    pub(super) fn body(&self, request_id: Option<&str>) -> String {
        let errors = self.violations.iter().map(|(field, description)| {
            let mut error = place(field);
            error.insert("detail".to_owned(), Value::from(description.as_str()));
            error
        });
        let body = ProblemBody {
            problem_type: format!("{TYPE_PREFIX}{}", self.code),
            title: MEANINGS.get(self.code.as_str()).copied(),
            status: self.status.as_u16(),
            detail: &self.message,
            instance: request_id,
            code: &self.code,
            hint: self.hint.as_deref(),
            errors: errors.collect(),
            retry_after_ms: self.retry_after_ms(),
            cluster_ms: self.cluster_ms,
            quota: self.quota.as_ref(),
            error: PrintedError {
                code: &self.code,
                message: &self.message,
                hint: self.hint.as_deref(),
            },
        };
        // Its values are texts and numbers, so this does not fail.
        serde_json::to_string(&body).unwrap_or_default()
    }

    /// The response to the request with this id.
    pub(super) fn response(&self, request_id: Option<&str>) -> Response {
        let text = self.body(request_id) + "\n";
        let mut response = json_response(self.status, text);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, PROBLEM);
        if let Some(delay_ms) = self.retry_after_ms() {
            headers.insert(RETRY_AFTER, delay_ms.div_ceil(1_000).into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The place of a violation: a field of the request, or a line and a column in the text of a definition.
fn place(field: &str) -> Map<String, Value> {
    let mut place = Map::new();
    let mut parts = field.rsplitn(3, ':');
    let mut number = || parts.next()?.parse::<u32>().ok();
    if let (Some(column), Some(line)) = (number(), number()) {
        place.insert("pointer".to_owned(), Value::from("/source"));
        place.insert("line".to_owned(), line.into());
        place.insert("column".to_owned(), column.into());
        return place;
    }
    let pointer = match field.starts_with('/') || field.is_empty() {
        true => field.to_owned(),
        false => format!("/{}", field.replace('.', "/")),
    };
    place.insert("pointer".to_owned(), pointer.into());
    place
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Status::from(refusal).into()
    }
}

impl From<Status> for Problem {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        // The transport has refused a request whose status has no code.
        let code = info.map_or(code_of(status.code()), |info| &info.reason);
        let metadata = |key: &str| info?.metadata.get(key).cloned();
        let violations = details
            .bad_request()
            .map_or(&[][..], |request| &request.field_violations);
        let violations = violations
            .iter()
            .map(|violation| (violation.field.clone(), violation.description.clone()));
        Self {
            status: http_status(status.code(), code),
            code: code.to_owned(),
            message: status.message().to_owned(),
            hint: metadata(HINT),
            retry_delay: details.retry_info().and_then(|info| info.retry_delay),
            cluster_ms: metadata(CLUSTER_MS).and_then(|text| text.parse().ok()),
            quota: quota(metadata),
            violations: violations.collect(),
        }
    }
}

/// What the metadata of an error says about a quota.
fn quota(metadata: impl Fn(&str) -> Option<String>) -> Option<QuotaMembers> {
    let number = |key| metadata(key)?.parse().ok();
    Some(QuotaMembers {
        dimension: metadata(QUOTA_DIMENSION)?,
        limit: number(QUOTA_LIMIT)?,
        used: number(QUOTA_USED)?,
        scope: metadata(QUOTA_SCOPE)?,
    })
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.response(None);
        // The middleware `identify` adds the id of the request.
        response.extensions_mut().insert(self);
        response
    }
}

/// A response with a JSON body.
pub(super) fn json_response(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// The error code for a status without one.
fn code_of(code: Code) -> &'static str {
    match code {
        Code::DeadlineExceeded => "outcome_unknown",
        Code::InvalidArgument | Code::OutOfRange => "invalid_argument",
        Code::ResourceExhausted => "overloaded",
        Code::Unavailable => "unavailable",
        _ => "internal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::{ServerCode, Violation};
    use axum::body::to_bytes;
    use flotilla_engine::RejectionCode;
    use serde_json::json;

    async fn said(problem: Problem) -> (u16, Value) {
        let response = problem.response(Some("r1"));
        assert_eq!(response.headers()[CONTENT_TYPE], PROBLEM);
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_problem_says_everything_about_a_refusal() {
        let refusal = Refusal::new(RejectionCode::RunNotFound, "expected a run").with_hint("look");
        let expected = json!({
            "type": "urn:problem-type:flotilla:run_not_found",
            "title": RejectionCode::RunNotFound.meaning(),
            "status": 404,
            "detail": "expected a run",
            "instance": "r1",
            "code": "run_not_found",
            "hint": "look",
            "errors": [],
            "retry_after_ms": null,
            "cluster_ms": null,
            "error": {"code": "run_not_found", "message": "expected a run", "hint": "look"},
        });
        assert_eq!(said(refusal.into()).await, (404, expected));
    }

    #[tokio::test]
    async fn a_violation_has_its_place() {
        let violation = |field: &str| Violation {
            field: field.to_owned(),
            description: "wrong".to_owned(),
        };
        let places = ["order.yaml:3:5", "input", "records.0.payload", "/wait", ""];
        let refusal = Refusal::new(ServerCode::DefinitionInvalid, "expected a definition")
            .with_violations(places.map(violation).into());
        let (status, body) = said(refusal.into()).await;
        assert_eq!(status, 422);
        let expected = json!([
            {"pointer": "/source", "line": 3, "column": 5, "detail": "wrong"},
            {"pointer": "/input", "detail": "wrong"},
            {"pointer": "/records/0/payload", "detail": "wrong"},
            {"pointer": "/wait", "detail": "wrong"},
            {"pointer": "", "detail": "wrong"},
        ]);
        assert_eq!(body["errors"], expected);
    }

    #[tokio::test]
    async fn a_status_of_the_transport_has_a_code_too() {
        let (status, body) = said(Status::deadline_exceeded("late").into()).await;
        assert_eq!((status, &body["code"]), (504, &json!("outcome_unknown")));
        for code in [
            Code::InvalidArgument,
            Code::ResourceExhausted,
            Code::Internal,
        ] {
            assert!(MEANINGS.contains_key(code_of(code)), "{code:?}");
        }
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
