//! Short texts that callers send back: task tokens, ids of runs and records, names.

use crate::target::{Target, Verdict};
use flotilla_engine::ids::{
    ActionName, ActionRunNumber, AttributeName, ErrorCode, KvKey, Namespace, OutcomeName, RunId,
    StreamName, WorkflowVersion,
};
use flotilla_engine::{RecordId, StreamPosition, TaskToken};

pub(super) const TARGET: Target = Target {
    name: "identifier",
    summary: "tokens, ids and names: what was handed out has one spelling, and a name stays what it is",
    tokens: &[
        "arun-",
        "wfrun-",
        ".",
        "-",
        "0",
        "1",
        "18446744073709551615",
        "0123456789abcdef",
        "$",
        "+",
        "_",
        "\0",
        "é",
        "flo.",
    ],
    check,
};

fn check(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Verdict::Refused;
    };
    let accepted = [
        is_token(text),
        is_position(text),
        is_numbered_run(text),
        is_numbered_action_run(text),
        is_name(text),
    ];
    if accepted.contains(&true) {
        Verdict::Accepted
    } else {
        Verdict::Refused
    }
}

/// A token has only one valid spelling, that in which it was issued.
fn is_token(text: &str) -> bool {
    let Ok(token) = text.parse::<TaskToken>() else {
        return false;
    };
    assert_eq!(token.to_string(), text);
    assert!(text.starts_with(&token.task_id()));
    true
}

fn is_position(text: &str) -> bool {
    let position = text.parse();
    if let Ok(id) = text.parse::<RecordId>() {
        assert_eq!(position, Ok(StreamPosition::Id(id)));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.next() > id || id == RecordId::END);
    }
    position.is_ok()
}

fn is_numbered_run(text: &str) -> bool {
    let number = RunId::new(text).ok().and_then(|id| id.generated_number());
    if let Some(number) = number {
        assert_eq!(RunId::generated(number).as_str(), text);
    }
    number.is_some()
}

fn is_numbered_action_run(text: &str) -> bool {
    let number = ActionRunNumber::from_id(text);
    if let Some(number) = number {
        assert_eq!(number.to_string(), text);
    }
    number.is_some()
}

/// A name is unchanged, and contains nothing that would end a key or move a terminal's cursor.
fn is_name(text: &str) -> bool {
    let names = [
        Namespace::new(text).map(|name| name.to_string()),
        ActionName::new(text).map(|name| name.to_string()),
        AttributeName::new(text).map(|name| name.to_string()),
        OutcomeName::new(text).map(|name| name.to_string()),
        StreamName::new(text).map(|name| name.to_string()),
        WorkflowVersion::new(text).map(|name| name.to_string()),
        ErrorCode::new(text).map(|name| name.to_string()),
        KvKey::new(text).map(|name| name.to_string()),
    ];
    for name in names.iter().flatten() {
        assert_eq!(name, text);
        assert!(!name.contains(char::is_control));
    }
    names.iter().any(Result::is_ok)
}
