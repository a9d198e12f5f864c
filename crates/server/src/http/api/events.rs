//! The updates of a watched run as server-sent events (H25).
//!
//! An event of the history has its number as id, so a client that reconnects to any node with `Last-Event-ID` misses nothing and
//! gets nothing twice (H26).

use super::call::{EventCall, to_http};
use super::refusals;
use super::{Api, transcoder};
use crate::connections::Busy;
use crate::errors::Refusal;
use crate::faults::planted;
use crate::http::problem::Problem;
use crate::limits::EVENT_STREAM_SILENCE_MAX;
use axum::body::Body as HttpBody;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::{Buf, Bytes, BytesMut};
use flotilla_api::json;
use futures::stream;
use http_body_util::{BodyExt, Full};
use prost_reflect::{DynamicMessage, MessageDescriptor, Value};
use std::convert::Infallible;
use std::mem;
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tower::ServiceExt;

/// The media type of server-sent events.
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
/// Tells proxies not to hold events back.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The field of the request with the number of the last event that the client has.
const AFTER_SEQ: &str = "after_seq";
/// How long a client waits before it reconnects.
const PREAMBLE: &str = "retry: 3000\n\n";
const PING: &str = ": ping\n\n";

/// The number of the last event that the client has, from the header that clients repeat when they reconnect.
///
/// # Errors
/// The header is not a number.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number);
    number.map(Some).ok_or_else(|| {
        refusals::invalid_header(format!(
            "expected `Last-Event-ID` to be a number, but it is `{text}`"
        ))
    })
}

/// Whether the client takes server-sent events.
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().peekable();
    let is_any = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        text.contains("text/event-stream") || text.contains("*/*")
    };
    accepted.peek().is_none() || accepted.any(is_any)
}

impl Api {
    /// Serves one call whose response is a stream of events.
    pub(super) async fn events(&self, call: EventCall) -> Response {
        let (mut after_seq, is_reconnecting) = match call.last_event_id {
            Some(seq) => (planted::continued_after(seq), true),
            None => (call.after_seq(), false),
        };
        let mut is_reset = false;
        loop {
            let mut updates = match self.open(&call, after_seq).await {
                Ok(updates) => updates,
                Err(response) => return response,
            };
            // The first update comes immediately.
            let first = match updates.next_update().await {
                Ok(Some(first)) => first,
                Ok(None) => return StatusCode::NO_CONTENT.into_response(),
                Err(status) => return Problem::from(status).into_response(),
            };
            if first.seq < after_seq && first.kind == Kind::Status && !is_reset {
                // The client has seen events of another run with this id.
                (after_seq, is_reset) = (0, true);
                continue;
            }
            if is_reconnecting && !is_reset && first.is_end {
                // So that it does not reconnect again.
                return StatusCode::NO_CONTENT.into_response();
            }
            return respond(updates, first, is_reset);
        }
    }

    /// Opens the stream of updates after an event.
    async fn open(&self, call: &EventCall, after_seq: u64) -> Result<Updates, Response> {
        let mut message = call.request.clone();
        message.set_field_by_name(AFTER_SEQ, Value::U64(after_seq));
        let framed = HttpBody::new(Full::new(transcoder::framed(message)));
        let mut request = Request::new(framed);
        *request.method_mut() = axum::http::Method::POST;
        *request.uri_mut() = call.uri.clone();
        *request.headers_mut() = call.headers.clone();
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        request.extensions_mut().extend(call.extensions.clone());
        let response = match self.streams.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        if transcoder::failure(response.headers()).is_some() {
            return Err(to_http(response, false));
        }
        Ok(Updates {
            body: response.into_body(),
            received: BytesMut::new(),
            memory: Vec::new(),
            descriptor: call.response.clone(),
            _in_progress: call.begin(),
        })
    }
}

/// What an update is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Event,
    Status,
}

/// One update of a run.
#[derive(Debug)]
struct Update {
    kind: Kind,
    /// The number of its event, or of the last event before the status.
    seq: u64,
    /// Whether it is the status of an ended run.
    is_end: bool,
    json: String,
    /// Counts until it is dropped.
    memory: Vec<Bytes>,
}

impl Update {
    /// Reads an update from its message.
    fn read(message: &DynamicMessage, memory: Vec<Bytes>) -> Option<Self> {
        let part = |name: &str| {
            let is_set = message.has_field_by_name(name);
            let value = message.get_field_by_name(name).filter(|_| is_set)?;
            value.as_message().cloned()
        };
        let (kind, update) = match part("event") {
            Some(event) => (Kind::Event, event),
            None => (Kind::Status, part("status")?),
        };
        Some(Self {
            kind,
            seq: update.get_field_by_name("seq")?.as_u64()?,
            is_end: kind == Kind::Status && update.has_field_by_name("terminal"),
            json: String::from_utf8(json::to_json(&update).ok()?).ok()?,
            memory,
        })
    }

    /// The update as events of the stream.
    fn show(&self) -> String {
        match self.kind {
            Kind::Event => event("history", Some(self.seq), &self.json),
            // Without an id, so that the client keeps that of the last event of the history.
            Kind::Status if self.is_end => {
                let status = event("status", None, &self.json);
                status + &event("stream-end", Some(self.seq), &self.json)
            }
            Kind::Status => event("status", None, &self.json),
        }
    }
}

/// One server-sent event.
fn event(name: &str, id: Option<u64>, data: &str) -> String {
    let mut text = format!("event: {name}\n");
    if let Some(id) = id {
        text.push_str(&format!("id: {id}\n"));
    }
    // A payload may have line breaks.
    for line in data.split(['\n', '\r']) {
        text.push_str(&format!("data: {line}\n"));
    }
    text.push('\n');
    text
}

/// The updates of a run.
struct Updates {
    body: Body,
    /// What has arrived of the next messages.
    received: BytesMut,
    /// What holds the memory of the messages until they are sent.
    memory: Vec<Bytes>,
    descriptor: MessageDescriptor,
    /// The connection does not end for another one.
    _in_progress: Option<Busy>,
}

impl Updates {
    /// The next update; `None` at the end. Cancel-safe.
    async fn next_update(&mut self) -> Result<Option<Update>, Status> {
        loop {
            if let Some(message) = self.take_message() {
                let memory = match self.received.is_empty() {
                    true => mem::take(&mut self.memory),
                    false => self.memory.clone(),
                };
                let message = DynamicMessage::decode(self.descriptor.clone(), message);
                let update = message
                    .ok()
                    .and_then(|message| Update::read(&message, memory));
                return update.map(Some).ok_or_else(|| {
                    Refusal::internal("expected an update, but it is malformed".to_owned()).into()
                });
            }
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            match frame?.into_data() {
                Ok(data) => {
                    self.received.extend_from_slice(&data);
                    self.memory.push(data);
                }
                Err(trailers) => {
                    let trailers = trailers.into_trailers().unwrap_or_default();
                    return transcoder::failure(&trailers).map_or(Ok(None), Err);
                }
            }
        }
    }

    /// The next message, if all of it has arrived.
    fn take_message(&mut self) -> Option<Bytes> {
        let prefix = self.received.get(..transcoder::PREFIX_BYTES)?;
        let [_, a, b, c, d] = *prefix else {
            return None;
        };
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if self.received.len() < transcoder::PREFIX_BYTES + length {
            return None;
        }
        self.received.advance(transcoder::PREFIX_BYTES);
        Some(self.received.split_to(length).freeze())
    }
}

/// Text that keeps the memory of its update until it is sent.
struct Sent {
    text: String,
    _memory: Vec<Bytes>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

fn sent(text: String, memory: Vec<Bytes>) -> Bytes {
    Bytes::from_owner(Sent {
        text,
        _memory: memory,
    })
}

/// The response with the first update and those that follow it.
fn respond(updates: Updates, first: Update, is_reset: bool) -> Response {
    let mut begin = PREAMBLE.to_owned();
    if is_reset {
        begin.push_str(&event("reset", None, "{}"));
    }
    begin.push_str(&first.show());
    let is_open = !first.is_end;
    let begin = sent(begin, first.memory);
    let state = (Some(begin), is_open.then_some(updates));
    let parts = stream::unfold(state, async |(begin, updates)| {
        if let Some(begin) = begin {
            return Some((Ok::<_, Infallible>(begin), (None, updates)));
        }
        let (part, updates) = next_part(updates?).await?;
        Some((Ok(part), (None, updates)))
    });
    let mut response = Response::new(HttpBody::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// The next part of the response, and the updates unless it is the last one.
async fn next_part(mut updates: Updates) -> Option<(Bytes, Option<Updates>)> {
    let update = match timeout(EVENT_STREAM_SILENCE_MAX, updates.next_update()).await {
        Err(_) => return Some((Bytes::from_static(PING.as_bytes()), Some(updates))),
        Ok(Ok(Some(update))) => update,
        Ok(Ok(None)) => return None,
        Ok(Err(status)) => {
            let text = event("error", None, &Problem::from(status).body(None));
            return Some((Bytes::from(text), None));
        }
    };
    let updates = (!update.is_end).then_some(updates);
    Some((sent(update.show(), update.memory), updates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_block_whatever_its_data() {
        assert_eq!(
            event("history", Some(7), "{\"a\":\n1}"),
            "event: history\nid: 7\ndata: {\"a\":\ndata: 1}\n\n"
        );
        assert_eq!(event("status", None, "{}"), "event: status\ndata: {}\n\n");
    }

    #[test]
    fn the_last_event_is_a_number() {
        let read = |text: &'static str| {
            last_event_id(&HeaderMap::from_iter([(
                LAST_EVENT_ID,
                HeaderValue::from_static(text),
            )]))
        };
        assert_eq!(last_event_id(&HeaderMap::new()), Ok(None));
        assert_eq!(read("12"), Ok(Some(12)));
        for text in ["", "-1", "+1", "x", "18446744073709551616"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn clients_that_want_something_else_are_noticed() {
        let accepts = |text: &'static str| {
            is_accepted(&HeaderMap::from_iter([(
                ACCEPT,
                HeaderValue::from_static(text),
            )]))
        };
        assert!(is_accepted(&HeaderMap::new()));
        assert!(accepts("text/event-stream") && accepts("text/html, */*;q=0.5"));
        assert!(!accepts("application/json"));
    }
}
