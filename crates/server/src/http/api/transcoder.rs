//! Turns calls over HTTP into gRPC calls to the services in this process (H2).
//!
//! The middleware that wraps the services for gRPC wraps the transcoder too, so that a call over HTTP has the same limits,
//! permissions, metrics and traces. The transcoder reports failures as gRPC statuses.

use super::etag::{self, KnownTags};
use super::refusals;
use super::route::Route;
use crate::access::{CallContext, Needs};
use crate::connections::Admitted;
use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::UNCHECKED_BODY_BYTES_MAX;
use crate::sending::ResponseMemory;
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION, TE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use bytes::{BufMut, Bytes, BytesMut};
use flotilla_api::json;
use http_body_util::{BodyExt, Full};
use prost::Message;
use prost_reflect::{DynamicMessage, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{self, Poll};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::{Code, Status};

/// The prefix of a gRPC message: one byte that says whether it is compressed, and four bytes with its length.
pub(super) const PREFIX_BYTES: usize = 5;

/// A call whose body has not been read yet.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The route of the call.
    pub(super) route: Arc<Route>,
    /// The request, with the fields from the path, the query and the headers.
    pub(super) request: DynamicMessage,
    /// The names of the fields from the path, the query and the headers.
    pub(super) given: BTreeSet<String>,
    /// The field that holds the whole body; `None` if the body is JSON.
    pub(super) raw_field: Option<String>,
    /// The tags of responses that the caller already has.
    pub(super) known_tags: KnownTags,
    /// Whether a header makes the change conditional.
    pub(super) is_conditional: bool,
}

/// The services of the node, for calls over HTTP.
#[derive(Clone)]
pub(super) struct Transcoder {
    context: Arc<Context>,
    services: Routes,
}

impl Transcoder {
    /// A transcoder for these services.
    pub(super) fn new(context: Arc<Context>, services: Routes) -> Self {
        Self { context, services }
    }

    async fn transcode(self, mut request: Request<Body>) -> Result<Response<Body>, Status> {
        let call = request.extensions_mut().remove::<Call>();
        let call =
            call.ok_or_else(|| Status::internal("expected a call over HTTP, but it is missing"))?;
        let memory = ResponseMemory::in_extensions(request.extensions())?;
        let (mut parts, body) = request.into_parts();
        let body = self.read_body(&call.route, &parts, body).await?;
        // From here on, the connection does not end for another one: the caller may wait long for its response.
        let connection: Option<&Arc<Admitted>> = parts.extensions.get();
        let _in_progress = connection.map(Admitted::begin_request);
        let message = match call.message(body) {
            Ok(message) => message,
            Err(refusal) => {
                // Whether the caller may call at all comes first.
                self.check_caller(&parts).await?;
                return Err(refusal.into());
            }
        };
        let location_fields = call.route.location_fields(&message);
        parts.method = Method::POST;
        let grpc = HeaderValue::from_static("application/grpc");
        parts.headers.insert(CONTENT_TYPE, grpc);
        parts
            .headers
            .insert(TE, HeaderValue::from_static("trailers"));
        let framed = Body::new(Full::new(framed(message)));
        let mut services = self.services;
        let response = match services.call(Request::from_parts(parts, framed)).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let message = unary_message(response).await?;
        let message_bytes = message.len();
        let (response, bytes) = call.response(&location_fields, message)?;
        memory.reserve_more(bytes.saturating_sub(message_bytes))?;
        Ok(response)
    }

    /// Reads the whole body of a request. Most of a large body is read only if the caller may make any call at all.
    async fn read_body(
        &self,
        route: &Route,
        parts: &Parts,
        mut body: Body,
    ) -> Result<Bytes, Status> {
        let mut received = BytesMut::new();
        let mut is_checked = false;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            if received.len() + data.len() > route.body_bytes_max {
                return Err(refusals::too_large(route.body_bytes_max).into());
            }
            received.extend_from_slice(&data);
            if received.len() > UNCHECKED_BODY_BYTES_MAX && !is_checked {
                self.check_caller(parts).await?;
                is_checked = true;
            }
        }
        Ok(received.freeze())
    }

    async fn check_caller(&self, parts: &Parts) -> Result<(), Refusal> {
        let needs = parts.extensions.get().copied();
        let needs = needs.unwrap_or(Needs::NOTHING_SUFFICES);
        let metadata = MetadataMap::from_headers(parts.headers.clone());
        let caller = parts.extensions.get();
        CallContext::check_caller(&self.context, needs, (&metadata, caller)).await
    }
}

impl Service<Request<Body>> for Transcoder {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let transcoding = self.clone().transcode(request);
        Box::pin(async move { Ok(transcoding.await.unwrap_or_else(Status::into_http)) })
    }
}

impl Call {
    /// A call without fields.
    pub(super) fn new(route: Arc<Route>) -> Self {
        Self {
            request: DynamicMessage::new(route.request.clone()),
            route,
            given: BTreeSet::new(),
            raw_field: None,
            known_tags: KnownTags::default(),
            is_conditional: false,
        }
    }

    /// Sets a field from the path, the query or a header.
    ///
    /// # Errors
    /// The request has no such field, it is set already, or the text is not a value of its type.
    pub(super) fn set(&mut self, name: &str, text: &str) -> Result<(), Refusal> {
        let field = self.route.request.get_field_by_name(name);
        let is_list = field.is_some_and(|field| field.is_list());
        json::set_from_text(&mut self.request, name, text)
            .map_err(|error| refusals::invalid(&error))?;
        if !self.given.insert(name.to_owned()) && !is_list {
            let text = format!("expected `{name}` once, but it is given again");
            return Err(Refusal::invalid(name, text));
        }
        Ok(())
    }

    /// The request, with the fields from the body.
    fn message(&self, body: Bytes) -> Result<DynamicMessage, Refusal> {
        let mut message = self.request.clone();
        let in_body = match &self.raw_field {
            Some(field) => {
                message.set_field_by_name(field, raw_value(&message, field, body)?);
                BTreeSet::from([field.clone()])
            }
            None if body.is_empty() => BTreeSet::new(),
            None => {
                json::from_json(&mut message, &body).map_err(|error| refusals::invalid(&error))?
            }
        };
        if let Some(twice) = in_body.intersection(&self.given).next() {
            let text = format!(
                "expected `{twice}` only once, in the URL, a header or the body, but it is given twice"
            );
            return Err(Refusal::invalid(twice, text));
        }
        let mut required = self.route.required.iter();
        let missing = required.find(|name| !in_body.contains(*name) && !self.given.contains(*name));
        if let Some(missing) = missing {
            let text = format!("expected the field `{missing}`, but the body does not have it");
            return Err(Refusal::invalid(missing, text));
        }
        Ok(message)
    }

    /// The HTTP response with this message, and its size in bytes.
    fn response(
        &self,
        location_fields: &BTreeMap<String, String>,
        message: Bytes,
    ) -> Result<(Response<Body>, usize), Status> {
        let internal = |error: &dyn std::fmt::Display| {
            Status::from(Refusal::internal(format!(
                "expected a response, but {error}"
            )))
        };
        let message = DynamicMessage::decode(self.route.response.clone(), message)
            .map_err(|error| internal(&error))?;
        let mut text = json::to_json(&message).map_err(|error| internal(&error))?;
        // So that the prompt of a terminal begins on a new line.
        text.push(b'\n');
        let tag = etag::tag(self, &message, &text);
        if let Some(tag) = tag.as_ref().filter(|tag| self.known_tags.contain(tag)) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().insert(ETAG, tag.clone());
            return Ok((response, 0));
        }
        let bytes = text.len();
        let mut response = Response::new(Body::new(Full::new(Bytes::from(text))));
        *response.status_mut() = self.route.status(&message);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(super::JSON));
        if let Some(tag) = tag {
            headers.insert(ETAG, tag);
        }
        let location = self.route.location(location_fields, &message);
        if let Some(location) = location.and_then(|location| location.try_into().ok()) {
            headers.insert(LOCATION, location);
        }
        Ok((response, bytes))
    }
}

/// A body as the value of the field that holds it.
fn raw_value(message: &DynamicMessage, field: &str, body: Bytes) -> Result<Value, Refusal> {
    let default = message.get_field_by_name(field);
    if matches!(default.as_deref(), Some(Value::Bytes(_))) {
        return Ok(Value::Bytes(body));
    }
    let text = String::from_utf8(body.into());
    let text =
        text.map_err(|_| Refusal::invalid(field, "expected text in UTF-8, but the bytes are not"));
    Ok(Value::String(text?))
}

/// The message with its gRPC prefix.
pub(super) fn framed(message: DynamicMessage) -> Bytes {
    let length = message.encoded_len();
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + length);
    framed.put_u8(0);
    // The services refuse a longer message: their limit is far lower.
    framed.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    message.encode_raw(&mut framed);
    framed.freeze()
}

/// The status in the headers or trailers of a gRPC response, if the call failed.
pub(super) fn failure(headers: &HeaderMap) -> Option<Status> {
    let status = Status::from_header_map(headers);
    status.filter(|status| status.code() != Code::Ok)
}

/// The only message of a response.
async fn unary_message(response: Response<Body>) -> Result<Bytes, Status> {
    if let Some(failure) = failure(response.headers()) {
        return Err(failure);
    }
    let collected = response.into_body().collect().await?;
    if let Some(failure) = collected.trailers().and_then(failure) {
        return Err(failure);
    }
    let mut message = collected.to_bytes();
    if message.len() < PREFIX_BYTES {
        return Err(Refusal::internal("expected a response, but it is empty".to_owned()).into());
    }
    Ok(message.split_off(PREFIX_BYTES))
}
