//! Properties of every history.

use serde_json::Value;
use std::collections::BTreeSet;

/// An event, from `flo workflow history -o json` or the protocol.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) at_ms: u64,
    pub(crate) raft_index: u64,
    pub(crate) kind: String,
    pub(crate) step: String,
    /// The other fields of the event.
    pub(crate) attributes: Value,
}

impl From<Value> for Event {
    fn from(value: Value) -> Self {
        let number = |name: &str| value[name].as_u64().expect("a published number");
        let text = |name: &str| value[name].as_str().expect("a published text").to_owned();
        Self {
            seq: number("seq"),
            at_ms: number("at_ms"),
            raft_index: number("raft_index"),
            kind: text("type"),
            step: text("step"),
            attributes: value,
        }
    }
}

impl From<flotilla_api::v1::Event> for Event {
    fn from(event: flotilla_api::v1::Event) -> Self {
        Self {
            seq: event.seq,
            at_ms: event.at_ms,
            raft_index: event.raft_index,
            kind: event.r#type,
            step: event.step,
            attributes: serde_json::from_slice(&event.attributes).unwrap_or_default(),
        }
    }
}

/// Expects the history of a completed run that visited no step twice: numbered without
/// gaps, in order of time and log, started and ended once, and with no step, action run or child that ended
/// twice.
pub(crate) fn expect_sound(run_id: &str, events: &[Event]) {
    let told = || format!("the history of {run_id}: {events:#?}");
    for (event, seq) in events.iter().zip(1..) {
        assert_eq!(event.seq, seq, "no gap in {}", told());
    }
    for pair in events.windows(2) {
        assert!(pair[0].at_ms <= pair[1].at_ms, "time runs on in {}", told());
        let is_ordered = pair[0].raft_index <= pair[1].raft_index;
        assert!(is_ordered, "the log runs on in {}", told());
    }
    let first = events.first().map(|event| event.kind.as_str());
    let last = events.last().map(|event| event.kind.as_str());
    assert_eq!(first, Some("workflow_started"), "{}", told());
    assert_eq!(last, Some("workflow_completed"), "{}", told());
    assert_eq!(count(events, "workflow_started"), 1, "{}", told());
    assert_eq!(count(events, "workflow_completed"), 1, "{}", told());
    let once = [
        ("step_started", "step"),
        ("step_completed", "step"),
        ("action_completed", "action_run_id"),
        ("child_completed", "child_run_id"),
    ];
    for (kind, key) in once {
        expect_once(events, kind, key, &told);
    }
    let started = count(events, "step_started");
    assert_eq!(started, count(events, "step_completed"), "{}", told());
}

/// How many events are of this type.
pub(crate) fn count(events: &[Event], kind: &str) -> usize {
    events.iter().filter(|event| event.kind == kind).count()
}

fn expect_once(events: &[Event], kind: &str, key: &str, told: &dyn Fn() -> String) {
    let mut seen = BTreeSet::new();
    for event in events.iter().filter(|event| event.kind == kind) {
        let subject = match key {
            "step" => event.step.clone(),
            _ => event.attributes[key].as_str().expect("an id").to_owned(),
        };
        assert!(
            seen.insert(subject),
            "{kind} once for each {key} in {}",
            told()
        );
    }
}
