//! Golden bytes (design rule 12): stored encodings must stay readable forever.
//!
//! Until the first release, `UPDATE=1` may rewrite these files. From then on, an existing line never changes; a new
//! version or variant adds new lines.

use crate::{samples, tables, testdata};
use flotilla_engine::ids::Namespace;
use flotilla_engine::{
    Body, Command, CommandEnvelope, CommandKind, Entry, NodeId, RequestId, Stamp,
};
use std::fmt::Write as _;

#[test]
fn entries_have_the_bytes_of_the_log() {
    let mut text = String::new();
    for body in samples::bodies() {
        let entry = entry(&body);
        assert_eq!(Entry::decode(&entry.encode()).expect("just encoded"), entry);
        writeln!(text, "{} {}", name_of(&body), hex(&entry.encode())).expect("a String");
    }
    let found = testdata::compare(&testdata::file("golden/entries.txt"), &text);
    assert!(found.is_ok(), "{}", found.unwrap_err());
}

#[test]
fn records_have_the_bytes_of_the_state() {
    let mut text = String::new();
    for row in tables::rows() {
        let (key, record) = (hex(&row.key), hex(&row.record));
        writeln!(text, "{} {key} {record}", row.name).expect("a String");
    }
    let found = testdata::compare(&testdata::file("golden/records.txt"), &text);
    assert!(found.is_ok(), "{}", found.unwrap_err());
}

#[test]
fn every_command_survives_the_way_to_the_leader() {
    assert_eq!(
        samples::bodies().len(),
        CommandKind::ALL.len(),
        "each kind has a sample"
    );
    for (position, body) in samples::bodies().into_iter().enumerate() {
        assert_eq!(
            position_of(&body),
            position,
            "samples are in the enum's order"
        );
        let command = body.into_command(Namespace::default_namespace());
        let envelope = command.by_anyone();
        let decoded = CommandEnvelope::decode(&envelope.encode()).expect("just encoded");
        assert_eq!(decoded, envelope);
    }
}

fn entry(body: &Body) -> Entry {
    let command = Command {
        request_id: Some(RequestId(0x1234_5678_9abc_def0)),
        ..body.clone().into_command(samples::namespace())
    };
    Entry {
        stamp: Stamp {
            now_ms: 1_700_000_000_000,
            seed: 42,
            node: NodeId(1),
        },
        offers: vec![samples::offer()],
        commands: vec![command.by_anyone()],
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn name_of(body: &Body) -> String {
    let text = format!("{body:?}");
    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

/// The place of its kind among all kinds.
fn position_of(body: &Body) -> usize {
    let mut kinds = CommandKind::ALL.iter();
    let position = kinds.position(|kind| *kind == body.kind());
    position.expect("all kinds are listed")
}
