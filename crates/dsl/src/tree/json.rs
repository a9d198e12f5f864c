//! Reads JSON text to nodes.
//!
//! `serde_json` splits the text into raw pieces, so numbers keep their digits, entries their order,
//! and each piece its position.

use super::{Entry, Kind, NESTING_MAX, Node, locator::Locator};
use crate::{Span, quote::quote};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{collections::BTreeSet, fmt};

/// Why a text is not the expected JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct JsonInvalid {
    pub(crate) message: String,
    pub(crate) span: Span,
}

/// Reads one JSON value.
///
/// # Errors
/// If it is not JSON, nests past 64 levels, repeats a key or holds a number that is out of range.
pub(crate) fn read(text: &str, mut locator: Locator<'_>) -> Result<Node, JsonInvalid> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => Reader { text, locator }.node(raw, 0),
        Err(error) => {
            let lines = text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1));
            let offset = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
            Err(invalid(locator.span(offset, 1))(error))
        }
    }
}

/// Whether the text is JSON at all.
pub(super) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn invalid(span: Span) -> impl Fn(serde_json::Error) -> JsonInvalid {
    move |error| {
        // The decoder counts from the start of its piece: the span gives the position.
        let message = error.to_string();
        let message = message
            .split(" at line ")
            .next()
            .unwrap_or_default()
            .to_owned();
        JsonInvalid { message, span }
    }
}

struct Reader<'text> {
    text: &'text str,
    locator: Locator<'text>,
}

impl<'text> Reader<'text> {
    /// Recurses, at most to [`NESTING_MAX`].
    fn node(&mut self, raw: &'text RawValue, depth: usize) -> Result<Node, JsonInvalid> {
        let piece = raw.get();
        let is_block = piece.starts_with(['{', '[']);
        let length = if is_block { 1 } else { piece.len() };
        let span = self.locator.span(self.offset_of(piece), length);
        if is_block && depth == NESTING_MAX {
            let message = format!("it nests deeper than {NESTING_MAX} levels");
            return Err(JsonInvalid { message, span });
        }
        let kind = match piece.as_bytes().first() {
            Some(b'{') => Kind::Mapping(self.entries(piece, span, depth)?.into()),
            Some(b'[') => {
                let items: Vec<&'text RawValue> =
                    serde_json::from_str(piece).map_err(invalid(span))?;
                let nodes: Result<Vec<Node>, _> = items
                    .into_iter()
                    .map(|item| self.node(item, depth + 1))
                    .collect();
                Kind::Sequence(nodes?.into())
            }
            _ => scalar(piece).map_err(invalid(span))?,
        };
        Ok(Node { span, kind })
    }

    fn entries(
        &mut self,
        piece: &'text str,
        span: Span,
        depth: usize,
    ) -> Result<Vec<Entry>, JsonInvalid> {
        let RawEntries(raw_entries) = serde_json::from_str(piece).map_err(invalid(span))?;
        let mut keys = BTreeSet::new();
        let mut entries = Vec::with_capacity(raw_entries.len());
        // Keys are decoded without their position: each is the first string after the previous
        // value.
        let mut value_end = self.offset_of(piece) + 1;
        for (key, raw) in raw_entries {
            let value_start = self.offset_of(raw.get());
            let between = self.text.get(value_end..value_start).unwrap_or_default();
            let key_start = value_end + between.find('"').unwrap_or_default();
            let key_length = between
                .rfind('"')
                .map_or(1, |end| value_end + end + 1 - key_start);
            value_end = value_start + raw.get().len();

            let key_span = self.locator.span(key_start, key_length);
            if !keys.insert(key.clone()) {
                let message = format!("duplicate key {}", quote(&key));
                return Err(JsonInvalid {
                    message,
                    span: key_span,
                });
            }
            let value = self.node(raw, depth + 1)?;
            entries.push(Entry {
                key: key.into(),
                key_span,
                value,
            });
        }
        Ok(entries)
    }

    /// The offset of a piece within the text.
    fn offset_of(&self, piece: &str) -> usize {
        piece
            .as_ptr()
            .addr()
            .saturating_sub(self.text.as_ptr().addr())
    }
}

fn scalar(piece: &str) -> Result<Kind, serde_json::Error> {
    Ok(match piece.as_bytes().first() {
        Some(b'n') => Kind::Null,
        Some(b't') => Kind::Bool(true),
        Some(b'f') => Kind::Bool(false),
        Some(b'"') => Kind::String(serde_json::from_str::<String>(piece)?.into()),
        _ => {
            serde_json::from_str::<serde_json::Number>(piece)?;
            Kind::Number(piece.into())
        }
    })
}

/// An object's entries in order, repeated keys included.
struct RawEntries<'text>(Vec<(String, &'text RawValue)>);

impl<'de> Deserialize<'de> for RawEntries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = RawEntries<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(RawEntries(entries))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::compact;

    fn round_trip(text: &str) -> Result<String, String> {
        read(text, Locator::new(text))
            .map(|node| compact(&node))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn order_digits_and_surrogate_pairs_survive() {
        let text = r#" {"b": [1.50, 123456789012345678901234567890], "a": "\ud83d\ude00\n"} "#;
        let expected = "{\"b\":[1.50,123456789012345678901234567890],\"a\":\"😀\\n\"}";
        assert_eq!(round_trip(text).as_deref(), Ok(expected));
    }

    #[test]
    fn what_a_mapping_must_not_hold_is_refused() {
        assert!(round_trip(r#"{"a":1,"a":2}"#).is_err_and(|error| error.contains("duplicate key")));
        assert!(round_trip("[1e999]").is_err_and(|error| error.contains("out of range")));
        assert!(round_trip(&"[".repeat(65)).is_err());
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        assert!(round_trip(&deep).is_err_and(|error| error.contains("64 levels")));
        assert_eq!(round_trip(&deep[1..129]).as_deref(), Ok(&deep[1..129]));
    }

    #[test]
    fn every_node_knows_its_place() {
        let text = "{\n  \"a\": {\"ü\": true,\n \"c\":\"xyz\"}}";
        let Ok(Node {
            kind: Kind::Mapping(root),
            ..
        }) = read(text, Locator::new(text))
        else {
            panic!("expected a mapping")
        };
        assert_eq!(root[0].key_span, Span::new(2, 3, 3));
        let Kind::Mapping(inner) = &root[0].value.kind else {
            panic!("expected a mapping")
        };
        assert_eq!(inner[0].value.span, Span::new(2, 14, 4));
        assert_eq!(inner[1].key_span, Span::new(3, 2, 3));
        assert_eq!(inner[1].value.span, Span::new(3, 6, 5));
    }
}
