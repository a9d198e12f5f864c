//! `POST /v1/tasks/{id}/report`: the outcome of an accepted task (W38).

use super::problem::{Problem, json_response};
use crate::access::CallContext;
use crate::context::Context;
use crate::errors::{Refusal, ServerCode};
use crate::keyring::ShownTaskToken;
use crate::limits::{DEADLINE_DEFAULT, HTTP_BODY_BYTES_MAX};
use crate::receiving::{self, RequestMemory};
use crate::services;
use crate::span;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use flotilla_api::v1;
use futures::StreamExt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::fmt::{self, Display};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

/// The body of a report.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Report<'a> {
    outcome: String,
    /// As it was written: numbers keep their digits.
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    delay_ms: u64,
    not_before_ms: u64,
    #[serde(borrow)]
    state_patch: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// Accepts only an object: the derived decoder would also read the fields from an array, in order.
struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Report<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        Report::deserialize(MapAccessDeserializer::new(fields))
    }
}

/// Serves one report.
pub(super) async fn report(
    State(context): State<Arc<Context>>,
    Path(task_id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let span = span::of_request("POST /v1/tasks/ID/report", request.headers());
    let served = serve(&context, &task_id, request)
        .instrument(span.clone())
        .await;
    let _entered = span.enter();
    match &served {
        Ok(_) => tracing::debug!("answered"),
        Err(problem) => tracing::debug!(%problem, "refused"),
    }
    served
}

async fn serve(
    context: &Arc<Context>,
    task_id: &str,
    request: Request,
) -> Result<Response, Problem> {
    let deadline = Instant::now() + DEADLINE_DEFAULT;
    let shown = context
        .keyring
        .verify_task_token(task_token(request.headers())?)?;
    if shown.token.task_id() != task_id {
        let message = "expected the token of the task in the path, but it is another task's";
        return Err(Refusal::invalid("id", message).into());
    }
    let memory = RequestMemory::reserve(&context.memory.requests);
    let memory = memory.ok_or_else(receiving::overloaded)?;
    let body = timeout_at(deadline, whole(request.into_body(), &memory)).await;
    let body = body.map_err(|_| too_slow())??;
    let request = parse_request(&body)?;
    let context = CallContext::of_task_token(context);
    services::report(&context, shown, request, deadline).await?;
    Ok(json_response(StatusCode::OK, "{}".to_owned()))
}

/// The token in `Authorization: Bearer TOKEN`.
fn task_token(headers: &HeaderMap) -> Result<&str, Refusal> {
    let refusal = |reason, found: &str| {
        let message =
            format!("expected the task's token as `Authorization: Bearer TOKEN`, but {found}");
        Refusal::new(reason, message)
            .with_hint("a command worker's program finds it in $FLO_TASK_TOKEN")
    };
    let header = headers.get(AUTHORIZATION);
    let header =
        header.ok_or_else(|| refusal(ServerCode::TokenMissing, "the header is missing"))?;
    let credentials = header.to_str().ok().and_then(|text| text.split_once(' '));
    let token = credentials
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
        .filter(|token| ShownTaskToken::unverified(token).is_ok());
    token.ok_or_else(|| {
        refusal(
            ServerCode::TokenMalformed,
            "the header holds something else",
        )
    })
}

/// The whole body, bounded. Its bytes count against `memory`.
async fn whole(body: Body, memory: &RequestMemory) -> Result<Vec<u8>, Problem> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            let message = format!("expected the whole body, but {error}");
            Refusal::invalid("body", message)
        })?;
        if bytes.len() + chunk.len() > HTTP_BODY_BYTES_MAX {
            return Err(too_large());
        }
        if !memory.grow(chunk.len()) {
            return Err(receiving::overloaded().into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// What the body reports; the token is in the header.
fn parse_request(body: &[u8]) -> Result<v1::ReportTaskRequest, Refusal> {
    let malformed = |found: &dyn Display| {
        let message = format!("expected {{\"outcome\", \"output\"}} in JSON, but {found}");
        Refusal::invalid("body", message)
    };
    let report = parse(body).map_err(|error| malformed(&error))?;
    let bytes = |value: Option<&RawValue>| {
        let text = value.map_or("", RawValue::get);
        Bytes::copy_from_slice(text.as_bytes())
    };
    Ok(v1::ReportTaskRequest {
        outcome: report.outcome,
        output: bytes(report.output),
        delay_ms: report.delay_ms,
        not_before_ms: report.not_before_ms,
        state_patch: bytes(report.state_patch),
        usage: bytes(report.usage),
        ..v1::ReportTaskRequest::default()
    })
}

fn parse(body: &[u8]) -> Result<Report<'_>, serde_json::Error> {
    let mut decoder = serde_json::Deserializer::from_slice(body);
    let report = decoder.deserialize_map(Object)?;
    decoder.end()?;
    Ok(report)
}

fn too_large() -> Problem {
    let message =
        format!("expected a body of at most {HTTP_BODY_BYTES_MAX} bytes, but it has more");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, Refusal::too_large(message))
}

fn too_slow() -> Problem {
    let seconds = DEADLINE_DEFAULT.as_secs();
    let message = format!("expected the whole body within {seconds} s, but it did not come");
    let refusal = Refusal::new(ServerCode::BodyTimeout, message);
    Problem::new(StatusCode::REQUEST_TIMEOUT, refusal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{MESSAGE_COPIES, REQUEST_BYTES, REQUESTS_BYTES_MIN};
    use crate::memory::MemoryPool;
    use axum::http::HeaderValue;
    use axum::response::IntoResponse;

    const TOKEN: &str = "arun-7.2.00000000000000ff";

    fn read(body: &str) -> Result<v1::ReportTaskRequest, Refusal> {
        parse_request(body.as_bytes())
    }

    #[test]
    fn a_report_keeps_its_output_as_it_was_written() {
        let request = read(r#"{"outcome": "paid", "output": {"amount": 1.50}}"#).unwrap();
        assert_eq!(request.outcome, "paid");
        assert_eq!(request.output, r#"{"amount": 1.50}"#);
        let bare = read("{}").unwrap();
        assert_eq!((bare.outcome.as_str(), &bare.output[..]), ("", &b""[..]));
    }

    #[test]
    fn an_invalid_report_is_refused_with_the_place() {
        for body in ["", "[]", "{\"outcome\": 1}", "{\"result\": 1}", "{} {}"] {
            let text = read(body).unwrap_err().to_string();
            assert!(text.contains("line 1 column"), "{body}: {text}");
        }
        let text = read(r#"["paid", 1]"#).unwrap_err().to_string();
        assert!(text.contains("expected an object"), "{text}");
    }

    #[test]
    fn the_token_is_the_bearers() {
        let read = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            task_token(&headers).map(str::to_owned)
        };
        assert_eq!(read(&format!("Bearer {TOKEN}")).as_deref(), Ok(TOKEN));
        assert_eq!(read(&format!("bearer  {TOKEN}")).as_deref(), Ok(TOKEN));
        for value in [TOKEN, &format!("Basic {TOKEN}"), "Bearer x"] {
            assert!(read(value).is_err(), "{value}");
        }
        assert!(task_token(&HeaderMap::new()).is_err());
    }

    #[tokio::test]
    async fn a_body_is_bounded() {
        let full = vec![b' '; HTTP_BODY_BYTES_MAX];
        let pool = MemoryPool::new(REQUESTS_BYTES_MIN);
        let memory = RequestMemory::reserve(&pool).expect("it is free");
        let body = whole(Body::from(full.clone()), &memory).await;
        assert_eq!(body.expect("it fits"), full);
        let reserved = REQUEST_BYTES + MESSAGE_COPIES * HTTP_BODY_BYTES_MAX;
        assert_eq!(pool.bytes_reserved(), reserved);
        let longer = [full, vec![b' ']].concat();
        let problem = whole(Body::from(longer), &memory).await;
        let response = problem.unwrap_err().into_response();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[tokio::test]
    async fn a_body_that_the_node_has_no_memory_for_is_shed() {
        let pool = MemoryPool::new(REQUEST_BYTES + MESSAGE_COPIES * 10);
        let memory = RequestMemory::reserve(&pool).expect("it is free");
        let problem = whole(Body::from(vec![b' '; 11]), &memory).await;
        let response = problem.unwrap_err().into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}
