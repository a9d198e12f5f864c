//! The span of a step: from its entry until the run left it.

use super::tracer::Placed;
use flotilla_engine::view::{EventView, StepVisit};
use flotilla_trace::{KeyValue, Span, SpanEvent, SpanKind, Status, Value};
use serde_json::Value as Json;
use std::time::{Duration, SystemTime};

/// The most that a span carries of one text of an event: a collector accepts a few MiB at a time.
const TEXT_BYTES_MAX: usize = 256;

/// The span of a step that was left.
pub(super) fn span(visit: StepVisit, placed: Placed) -> Span {
    let mut attributes = vec![
        KeyValue::new("flotilla.namespace", visit.namespace.to_string()),
        KeyValue::new("flotilla.workflow", visit.workflow.to_string()),
        KeyValue::new("flotilla.version", visit.version.to_string()),
        KeyValue::new("flotilla.run_id", visit.run_id.to_string()),
        KeyValue::new("flotilla.scope", visit.scope.clone()),
        KeyValue::new("flotilla.step", visit.step.to_string()),
        KeyValue::new("flotilla.visit", i64::from(visit.visit)),
        KeyValue::new("flotilla.attempts", i64::from(visit.attempts)),
    ];
    let outcome = visit.outcome.as_ref().map(ToString::to_string);
    let status = match &outcome {
        Some(outcome) if visit.is_failure => Status::error(format!("outcome {outcome}")),
        Some(_) => Status::Ok,
        None if visit.is_failure => Status::error("the run failed before the step had ended"),
        // It was given up.
        None => Status::Unset,
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
    let mut attributes = vec![KeyValue::new("flotilla.node_id", number(event.node.0))];
    if !event.detail.is_empty() {
        attributes.push(KeyValue::new("flotilla.detail", cut(event.detail)));
    }
    // Empty text means no attributes.
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
        Json::String(text) => cut(text).into(),
        Json::Bool(is_so) => is_so.into(),
        Json::Number(found) => match found.as_i64() {
            Some(found) => found.into(),
            None => found.to_string().into(),
        },
        other => cut(other.to_string()).into(),
    }
}

/// As much of a text as a span carries.
fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

fn number(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

fn at(ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::context::own;
    use flotilla_engine::NodeId;
    use flotilla_engine::definition::StepIndex;
    use flotilla_engine::ids::{
        Namespace, OutcomeName, RunId, RunNumber, StepName, WorkflowName, WorkflowVersion,
    };
    use flotilla_engine::view::VisitKey;
    use flotilla_trace::{SpanId, TraceId};

    fn status(outcome: Option<&str>, is_failure: bool) -> Status {
        let visit = StepVisit {
            key: VisitKey {
                scope: flotilla_engine::ids::ScopeNumber::ROOT,
                run: RunNumber(1),
                step: StepIndex(0),
                entered_at_ms: 1,
            },
            namespace: Namespace::default_namespace(),
            run_id: RunId::new("order-7").unwrap(),
            workflow: WorkflowName::new("order").unwrap(),
            version: WorkflowVersion::new("1.0.0").unwrap(),
            trace: None,
            scope: "fan/stock".to_owned(),
            visit: 2,
            step: StepName::new("pay").unwrap(),
            left_at_ms: 3,
            raft_index: 9,
            node: NodeId(1),
            outcome: outcome.map(|name| OutcomeName::new(name).unwrap()),
            is_failure,
            attempts: 1,
            events: Vec::new(),
            events_dropped_count: 0,
            is_beginning_missing: false,
        };
        let placed = Placed {
            context: own(TraceId::from(1), SpanId::from(2), true),
            parent: None,
        };
        span(visit, placed).status
    }

    #[test]
    fn only_failures_are_errors() {
        assert_eq!(status(Some("success"), false), Status::Ok);
        assert_eq!(
            status(Some("failure"), true),
            Status::error("outcome failure")
        );
        assert!(matches!(status(None, true), Status::Error { .. }));
        assert_eq!(status(None, false), Status::Unset, "its run was cancelled");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = cut("ä".repeat(TEXT_BYTES_MAX));
        assert_eq!(text.chars().count(), TEXT_BYTES_MAX / 2);
    }
}
