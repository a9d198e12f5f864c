//! JSON that is transported as bytes.

use serde::de::IgnoredAny;
use serde_json::Value;

/// The value; empty bytes are `null`, and bytes that are not JSON, which no server sends, become a
/// string.
pub(super) fn value(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

/// The value; `null` if absent.
pub(super) fn optional_value(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, value)
}

/// The value for a table cell: a string without quotes, on one line.
pub(super) fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace(char::is_control, " "),
        other => other.to_string(),
    }
}

/// Whether the bytes are one JSON value.
pub(crate) fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bytes_become_values() {
        assert_eq!(value(br#"{"a":[1]}"#), json!({"a": [1]}));
        assert_eq!(value(b"half {"), json!("half {"));
        assert_eq!(value(b""), Value::Null);
        assert_eq!(optional_value(None), Value::Null);
        assert!(is_json(b" 1 ") && !is_json(b"") && !is_json(b"1 2"));
    }
}
