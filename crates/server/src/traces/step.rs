//! The span of a step: from its entry until the run left it.

use super::tracer::Placed;
use flotilla_engine::view::{EventView, StepVisit};
use flotilla_trace::{KeyValue, Span, SpanEvent, SpanKind, Status, Value};
use serde_json::Value as Json;
use std::time::{Duration, SystemTime};

/// What is told of a step that was left.
pub(super) fn span(visit: StepVisit, placed: Placed) -> Span {
    let mut attributes = vec![
        KeyValue::new("flotilla.namespace", visit.namespace.to_string()),
        KeyValue::new("flotilla.workflow", visit.workflow.to_string()),
        KeyValue::new("flotilla.version", visit.version.to_string()),
        KeyValue::new("flotilla.run_id", visit.run_id.to_string()),
        KeyValue::new("flotilla.step", visit.step.to_string()),
        KeyValue::new("flotilla.attempts", i64::from(visit.attempts)),
    ];
    let outcome = visit.outcome.as_ref().map(ToString::to_string);
    let status = match &outcome {
        Some(outcome) if visit.is_failure => Status::error(format!("outcome {outcome}")),
        Some(_) => Status::Ok,
        None => Status::error("the run ended before the step did"),
    };
    attributes.extend(outcome.map(|outcome| KeyValue::new("flotilla.outcome", outcome)));
    Span {
        context: placed.context,
        parent: placed.parent,
        kind: SpanKind::Internal,
        name: format!("{}/{}", visit.workflow, visit.step),
        start: at(visit.key.entered_at_ms),
        end: at(visit.left_at_ms),
        attributes,
        events: visit.events.into_iter().map(event).collect(),
        events_dropped: u32::try_from(visit.events_dropped_count).unwrap_or(u32::MAX),
        status,
    }
}

fn event(event: EventView) -> SpanEvent {
    let mut attributes = vec![KeyValue::new("flotilla.node", number(event.node.0))];
    if !event.detail.is_empty() {
        attributes.push(KeyValue::new("flotilla.detail", event.detail));
    }
    // Empty text stands for no attributes.
    let more: serde_json::Map<String, Json> =
        serde_json::from_str(&event.attributes).unwrap_or_default();
    attributes.extend(
        more.into_iter()
            .map(|(name, found)| KeyValue::new(format!("flotilla.{name}"), value(found))),
    );
    SpanEvent {
        name: event.type_name.to_owned(),
        at: at(event.at_ms),
        attributes,
    }
}

fn value(json: Json) -> Value {
    match json {
        Json::String(text) => text.into(),
        Json::Bool(is_so) => is_so.into(),
        Json::Number(found) => match found.as_i64() {
            Some(found) => found.into(),
            None => found.to_string().into(),
        },
        other => other.to_string().into(),
    }
}

fn number(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

fn at(ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}
