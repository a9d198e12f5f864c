//! Mappings share large values of the run's input.

use crate::replica::Replica;
use crate::samples;
use crate::script::define;
use flotilla_engine::definition::TriggerIndex;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::json::Json;
use flotilla_engine::limits::{EVENT_BYTES, PAYLOAD_PART_BYTES, SHARED_BYTES_MIN};
use flotilla_engine::rows::{
    Activations, Event, EventKind, History, HistoryRecord, PayloadPart, Payloads, ScopeId,
    StoredPayload, Table, read,
};
use flotilla_engine::{Body, NodeId, view};

/// The stored input of the first step of a run with this input, and its text.
fn mapped(mapping: &str, input: &str) -> (StoredPayload, String) {
    let mut replica = Replica::new();
    let register = Body::RegisterAction(Box::new(samples::plain_action()));
    replica.ask(register).expect("it is sound");
    let action = samples::action();
    let text =
        format!("define map 1\n start: run @{action} input={mapping} -> success=flo.Completed");
    let create = samples::plain_revision(define(&text));
    let create = Body::CreateDefinition(Box::new(create));
    replica.ask(create).expect("it is sound");
    let input = Json::from_checked(input.to_owned());
    let start = Body::StartRun(samples::plain_start("map", input));
    replica.ask(start).expect("it is enabled");
    let active = read::<Activations>(&replica.store, &(RunNumber(1), 1));
    let reference = active
        .expect("memory does not fail")
        .expect("it waits")
        .input;
    let stored = read::<Payloads>(&replica.store, &reference);
    let text = view::payload(&replica.store, reference);
    (
        stored.expect("memory does not fail").expect("it is kept"),
        text.expect("memory does not fail").as_str().to_owned(),
    )
}

#[test]
fn a_mapping_has_the_same_text_whether_or_not_it_shares_the_input() {
    for bytes in [10, SHARED_BYTES_MIN - 4, SHARED_BYTES_MIN - 2, 70_000] {
        let x = "\u{fc}".repeat(bytes / 2);
        let input = format!("{{\"x\": \"{x}\",\"y\":7}}");
        let mapping = r#"{"a":"$.input.x","b":["$.input.y","$.input.x"]}"#;
        let (stored, text) = mapped(mapping, &input);
        assert_eq!(text, format!("{{\"a\":\"{x}\",\"b\":[7,\"{x}\"]}}"));
        let is_shared = matches!(stored, StoredPayload::Parts(_));
        assert_eq!(is_shared, bytes + 2 >= SHARED_BYTES_MIN, "{bytes}");
        let (_, text) = mapped(r#"{"all":"$.input"}"#, &input);
        assert_eq!(text, format!("{{\"all\":{input}}}"));
    }
}

#[test]
fn a_small_part_of_a_large_input_is_stored_again() {
    let x = "x".repeat(900_000);
    let y = "y".repeat(2 * SHARED_BYTES_MIN);
    let input = format!("{{\"x\":\"{x}\",\"y\":\"{y}\"}}");
    let (stored, text) = mapped(r#"{"y":"$.input.y"}"#, &input);
    assert_eq!(text, format!("{{\"y\":\"{y}\"}}"));
    assert!(matches!(stored, StoredPayload::Text(_)), "{stored:?}");
}

/// Budgets depend on it, so it must not depend on how a compiler lays out a type (design rule 1).
#[test]
fn contents_count_the_same_in_every_build() {
    let parts = vec![
        PayloadPart::Text("{\"a\":".to_owned()),
        PayloadPart::Input { from: 5, to: 2_000 },
    ];
    let bytes = Payloads::content_bytes(&StoredPayload::Parts(parts));
    assert_eq!(bytes, 2 * PAYLOAD_PART_BYTES + 5);
    let event = |kind| Event {
        scope: ScopeId::default(),
        step: None,
        visit: 0,
        activation: None,
        kind,
    };
    let triggered = EventKind::TriggerStarted {
        trigger: TriggerIndex(0),
        partition: 0,
        records: vec![samples::record_id(); 3],
    };
    let record = HistoryRecord {
        at_ms: 1,
        raft_index: 1,
        node: NodeId(1),
        term: 1,
        payloads_count: 1,
        events: vec![event(EventKind::StepStarted), event(triggered)],
    };
    assert_eq!(History::content_bytes(&record), 2 * EVENT_BYTES + 3 * 16);
}
