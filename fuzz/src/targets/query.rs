//! Conditions on runs, as `--where` takes them (W22).

use super::place::{assert_sentence, assert_within};
use crate::target::{Target, Verdict};
use chrono::{DateTime, SecondsFormat, Utc};
use flotilla_dsl::query::{CONDITIONS_MAX, QueryInvalid, parse};
use flotilla_engine::rows::AttributeValue;
use flotilla_engine::view::{Comparison, Condition, Equality, RunQuery};

pub(super) const TARGET: Target = Target {
    name: "query",
    summary: "conditions on runs: parsed, printed and parsed again the same; a mistake's caret is in the text",
    tokens: &[
        "workflow",
        "status",
        "started_at",
        "completed_at",
        "amount",
        " and ",
        " AND ",
        " or ",
        "=",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "<>",
        "==",
        "'failed'",
        "'",
        "''",
        "\"",
        "(",
        ")",
        "-1.5e3",
        "99",
        "true",
        "2026-01-31T09:00:00Z",
        "2026-01-31T09:00:00.123456789+01:00",
        "\n",
        "\r",
        "\t",
        "é",
        "\u{1b}[31m",
    ],
    check,
};

fn check(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Verdict::Refused;
    };
    match parse(text) {
        Ok(query) => {
            assert!(query.conditions.len() <= CONDITIONS_MAX);
            let printed = print(&query);
            assert_eq!(parse(&printed), Ok(query), "printed as {printed:?}");
            Verdict::Accepted
        }
        Err(invalid) => {
            check_mistake(&invalid, text);
            Verdict::Refused
        }
    }
}

fn check_mistake(invalid: &QueryInvalid, text: &str) {
    assert_within(invalid.span, text.split('\n'));
    assert_sentence(&invalid.message);
    if let Some(hint) = &invalid.hint {
        assert_sentence(hint);
    }
    let shown = invalid.render(text);
    let is_obeyed = |sign: char| sign.is_control() && !matches!(sign, '\n' | '\t');
    assert!(
        !shown.contains(is_obeyed),
        "a terminal would obey {shown:?}"
    );
}

fn print(query: &RunQuery) -> String {
    let conditions: Vec<String> = query.conditions.iter().map(condition).collect();
    conditions.join(" and ")
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::Workflow(equals, name) => {
            format!("workflow {} {}", equality(*equals), quoted(name.as_str()))
        }
        Condition::Status(equals, status) => {
            format!("status {} {}", equality(*equals), quoted(status.name()))
        }
        Condition::StartedAt(compares, at_ms) => {
            format!("started_at {} {at_ms}", comparison(*compares))
        }
        Condition::CompletedAt(compares, at_ms) => {
            format!("completed_at {} {at_ms}", comparison(*compares))
        }
        Condition::Attribute {
            name,
            comparison: compares,
            values,
        } => {
            let first = values.first().expect("a value means one thing at least");
            format!("{name} {} {}", comparison(*compares), value(first))
        }
    }
}

/// The value as it is written: the first of its meanings determines the form.
fn value(value: &AttributeValue) -> String {
    match value {
        AttributeValue::String(text) => quoted(text),
        AttributeValue::Number(number) => number.as_str().to_owned(),
        AttributeValue::Timestamp(at_ms) => {
            let time = DateTime::<Utc>::from_timestamp_millis(*at_ms);
            let time = time.expect("it was read from a date");
            time.to_rfc3339_opts(SecondsFormat::Millis, true)
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn equality(equality: Equality) -> &'static str {
    match equality {
        Equality::Equal => "=",
        Equality::NotEqual => "!=",
    }
}

fn comparison(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}
