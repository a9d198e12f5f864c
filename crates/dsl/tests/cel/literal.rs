//! The tagged values of the cases, such as `{"int": "1"}`.

use flotilla_engine::expression::{Double, Key, List, Map, Span, Timestamp, Type, Value};
use serde_json::json;
use std::collections::BTreeMap;

/// A tagged value as a value.
pub(crate) fn value(tagged: &serde_json::Value) -> Value {
    let (tag, content) = tagged
        .as_object()
        .and_then(|of| of.iter().next())
        .expect("a tag");
    let text = || content.as_str().expect("a text");
    match tag.as_str() {
        "null" => Value::Null,
        "bool" => Value::Bool(content.as_bool().expect("a bool")),
        "int" => Value::Int(text().parse().expect("an int")),
        "uint" => Value::Uint(text().parse().expect("a uint")),
        "double" => match Double::new(text().parse().expect("a number")) {
            Some(double) => Value::Double(double),
            None => Value::String(text().into()),
        },
        "string" => Value::String(text().into()),
        "bytes" => Value::Bytes(bytes(text()).into()),
        "list" => Value::list(
            content
                .as_array()
                .expect("a list")
                .iter()
                .map(value)
                .collect(),
        ),
        "map" => Value::map(
            content
                .as_array()
                .expect("entries")
                .iter()
                .map(|entry| (key(value(&entry[0])), value(&entry[1])))
                .collect::<BTreeMap<_, _>>(),
        ),
        "type" => Value::Type(
            Type::ALL
                .into_iter()
                .find(|of| of.name() == text())
                .expect("a type"),
        ),
        "timestamp" => Value::Timestamp(Timestamp::parse(text()).expect("a timestamp")),
        "duration" => Value::Duration(Span::parse(text()).expect("a duration")),
        other => panic!("unknown tag {other}"),
    }
}

fn key(value: Value) -> Key {
    match value {
        Value::Bool(key) => Key::Bool(key),
        Value::Int(key) => Key::Int(key),
        Value::Uint(key) => Key::Uint(key),
        Value::String(key) => Key::String(key),
        other => panic!("{other:?} is not a key"),
    }
}

/// A tagged value in the form that [`shown`] has.
pub(crate) fn normal(tagged: &serde_json::Value) -> serde_json::Value {
    shown(&value(tagged))
}

/// A value, tagged.
pub(crate) fn shown(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => json!({"null": null}),
        Value::Bool(value) => json!({"bool": value}),
        Value::Int(value) => json!({"int": value.to_string()}),
        Value::Uint(value) => json!({"uint": value.to_string()}),
        Value::Double(value) => json!({"double": value.to_string()}),
        Value::String(text) => json!({"string": text.as_str()}),
        Value::Bytes(bytes) => json!({"bytes": bytes.to_vec()}),
        Value::List(List::Made(elements)) => {
            json!({"list": elements.iter().map(shown).collect::<Vec<_>>()})
        }
        Value::Map(Map::Made(entries)) => {
            let entries = entries.iter();
            let entries: Vec<_> = entries
                .map(|(key, value)| [shown(&key.to_value()), shown(value)])
                .collect();
            json!({"map": entries})
        }
        Value::List(List::Json(_)) | Value::Map(Map::Json(_)) => {
            panic!("the cases contain no JSON")
        }
        Value::Timestamp(time) => json!({"timestamp": time.to_string()}),
        Value::Duration(span) => json!({"duration": span.to_string()}),
        Value::Type(of) => json!({"type": of.name()}),
    }
}

/// Decodes base64.
fn bytes(text: &str) -> Vec<u8> {
    let sextet = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 6 | u32::from(sextet(*byte)));
        let bits = bits << (6 * (4 - chunk.len()));
        bytes.extend(&bits.to_be_bytes()[1..chunk.len()]);
    }
    bytes
}
