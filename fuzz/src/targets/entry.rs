//! Entries of the log, and commands on their way to the leader (design rule 12).

use crate::target::{Target, Verdict};
use flotilla_engine::{CommandEnvelope, Entry};

pub(super) const TARGET: Target = Target {
    name: "entry",
    summary: "log entries and commands: decoded, encoded and decoded again the same, and never longer",
    tokens: &[
        "\u{1}",
        "\0",
        "default",
        "{}",
        "null",
        "wfrun-1",
        "arun-1.1.",
    ],
    check,
};

fn check(input: &[u8]) -> Verdict {
    if let Ok(envelope) = CommandEnvelope::decode(input) {
        check_envelope(&envelope, Some(input.len()));
    }
    let Ok(entry) = Entry::decode(input) else {
        return Verdict::Refused;
    };
    let encoded = entry.encode();
    assert!(
        encoded.len() <= input.len(),
        "what is encoded is the shortest form"
    );
    assert_eq!(Entry::decode(&encoded).expect("just encoded"), entry);
    for envelope in &entry.commands {
        check_envelope(envelope, None);
    }
    Verdict::Accepted
}

fn check_envelope(envelope: &CommandEnvelope, length_max: Option<usize>) {
    let encoded = envelope.encode();
    assert!(length_max.is_none_or(|max| encoded.len() <= max));
    let decoded = CommandEnvelope::decode(&encoded);
    assert_eq!(decoded.expect("just encoded"), *envelope);
    let body = &envelope.command.body;
    // The checks of every command before it is proposed.
    let _ = (body.admission(), body.subject());
}
