//! JSON as text: finding, quoting and reading values without a JSON library.
//!
//! Payloads are validated as JSON where they enter the cluster. Inside `apply` they stay text: a path yields a slice,
//! and rendering copies slices. No number is re-formatted, and no library version can change a byte of state (design
//! rule 1).

mod merge_patch;
mod paths;

pub use merge_patch::merge_patch;
pub(crate) use paths::Paths;

use crate::definition::Segment;
use memchr::memchr2;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::fmt::Write as _;

/// A JSON text, cheap to clone. Invariant: valid JSON, nested no deeper than the API allows; validated there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Json(SmolStr);

impl Json {
    /// Wraps a text that the caller has validated as JSON.
    #[must_use]
    pub fn from_checked(text: impl Into<SmolStr>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, shared.
    pub(crate) fn into_text(self) -> SmolStr {
        self.0
    }

    /// JSON `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(SmolStr::new_static("null"))
    }

    /// `text` as a JSON string.
    #[must_use]
    pub fn string(text: &str) -> Self {
        let mut quoted = String::with_capacity(text.len() + 2);
        quote(text, &mut quoted);
        Self(quoted.into())
    }

    /// The output of a failed step (W10a): `{"error":{"code","message"}}`.
    #[must_use]
    pub fn error(code: &str, message: &str) -> Self {
        let mut text = String::from("{\"error\":{\"code\":");
        quote(code, &mut text);
        text.push_str(",\"message\":");
        quote(message, &mut text);
        text.push_str("}}");
        Self(text.into())
    }
}

/// Appends `text` to `out` as a JSON string.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if u32::from(control) < 0x20 => {
                write!(out, "\\u{:04x}", u32::from(control)).expect("a String takes every byte");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// The value that `segments` lead to, as a slice of `text`; `None` if it does not exist.
#[must_use]
pub fn find<'a>(text: &'a str, segments: &[Segment]) -> Option<&'a str> {
    let mut value = text.trim_matches(is_space);
    for segment in segments {
        value = match segment {
            Segment::Field(name) => field(value, name)?,
            Segment::Index(index) => element(value, *index)?,
        };
    }
    Some(value)
}

/// The content of a JSON string; `None` if the value is not a string.
#[must_use]
pub fn as_string(value: &str) -> Option<String> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    Some(unescape(inner))
}

/// Whether the value is a number.
#[must_use]
pub fn is_number(value: &str) -> bool {
    value.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

pub(crate) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// The last field of an object with this name, as every JSON decoder takes it.
pub(crate) fn field<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let named = fields(object).filter(|(key, _)| is_key(key, name));
    named.last().map(|(_, value)| value)
}

fn element(array: &str, index: u32) -> Option<&str> {
    elements(array).nth(usize::try_from(index).ok()?)
}

/// The fields of an object in their order, each its key in quotation marks and its value; none if the value is
/// not an object.
pub(crate) fn fields(object: &str) -> impl Iterator<Item = (&str, &str)> {
    let inner = object.strip_prefix('{').unwrap_or_default();
    let mut rest = inner.trim_start_matches(is_space);
    std::iter::from_fn(move || {
        if !rest.starts_with('"') {
            return None;
        }
        let (key, after_key) = split_value(rest);
        let after_colon = after_key.trim_start_matches(is_space).strip_prefix(':')?;
        let (value, after_value) = split_value(after_colon.trim_start_matches(is_space));
        rest = skip_comma(after_value);
        Some((key, value))
    })
}

/// The elements of an array in their order; none if the value is not an array.
pub(crate) fn elements(array: &str) -> impl Iterator<Item = &str> {
    let mut rest = inside_array(array);
    std::iter::from_fn(move || {
        let (value, after) = next_element(rest?)?;
        rest = Some(after);
        Some(value)
    })
}

/// The text of an array from its first element on; `None` if the value is not an array.
pub(crate) fn inside_array(array: &str) -> Option<&str> {
    let inner = array.strip_prefix('[')?;
    Some(inner.trim_start_matches(is_space))
}

/// The element with which the rest of an array begins, and the rest after it; `None` at the end.
pub(crate) fn next_element(rest: &str) -> Option<(&str, &str)> {
    if rest.is_empty() || rest.starts_with(']') {
        return None;
    }
    let (value, after_value) = split_value(rest);
    Some((value, skip_comma(after_value)))
}

fn skip_comma(text: &str) -> &str {
    let text = text.trim_start_matches(is_space);
    text.strip_prefix(',')
        .unwrap_or(text)
        .trim_start_matches(is_space)
}

fn is_key(quoted: &str, name: &str) -> bool {
    key_name(quoted) == name
}

/// The name of a field, from its key in quotation marks.
pub(crate) fn key_name(quoted: &str) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if inner.contains('\\') {
        Cow::Owned(unescape(inner))
    } else {
        Cow::Borrowed(inner)
    }
}

/// Splits `text` after the value with which it begins.
fn split_value(text: &str) -> (&str, &str) {
    let end = match text.as_bytes().first() {
        Some(b'"') => string_end(text.as_bytes(), 0),
        Some(b'{' | b'[') => container_end(text.as_bytes()),
        _ => text
            .find(|c| is_space(c) || matches!(c, ',' | ']' | '}'))
            .unwrap_or(text.len()),
    };
    text.split_at(end)
}

/// The position after the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut position = start + 1;
    while let Some(rest) = bytes.get(position..)
        && let Some(found) = memchr2(b'"', b'\\', rest)
    {
        position += found + 1;
        if rest[found] == b'"' {
            return position;
        }
        // The escaped character.
        position += 1;
    }
    bytes.len()
}

/// How deep the objects and arrays of a JSON text nest: 0 for a scalar.
#[must_use]
pub fn depth(text: &str) -> usize {
    depths(text.as_bytes())
        .map(|(_, depth)| depth)
        .max()
        .unwrap_or(0)
}

/// The position after the object or array that begins at 0.
fn container_end(bytes: &[u8]) -> usize {
    let end = depths(bytes).find(|(_, depth)| *depth == 0);
    end.map_or(bytes.len(), |(position, _)| position + 1)
}

/// The positions at which objects and arrays begin and end, each with the depth behind it.
fn depths(bytes: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let (mut position, mut depth) = (0, 0_usize);
    std::iter::from_fn(move || {
        while let Some(byte) = bytes.get(position) {
            let here = position;
            position += 1;
            match byte {
                b'"' => {
                    position = string_end(bytes, here);
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => continue,
            }
            return Some((here, depth));
        }
        None
    })
}

fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => out.push(unicode_escape(&mut characters)),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

/// Reads the rest of `\uXXXX`, or of a surrogate pair. An invalid code point becomes U+FFFD.
fn unicode_escape(characters: &mut std::str::Chars<'_>) -> char {
    let hex = |characters: &mut std::str::Chars<'_>| {
        let digits: String = characters.take(4).collect();
        u32::from_str_radix(&digits, 16).unwrap_or(0xfffd)
    };
    let first = hex(characters);
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first).unwrap_or('\u{fffd}');
    }
    let mut ahead = characters.clone();
    if ahead.next() != Some('\\') || ahead.next() != Some('u') {
        return '\u{fffd}';
    }
    let second = hex(&mut ahead);
    if !(0xdc00..0xe000).contains(&second) {
        return '\u{fffd}';
    }
    *characters = ahead;
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code).unwrap_or('\u{fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn path(text: &str) -> Vec<Segment> {
        text.split('.')
            .filter(|part| !part.is_empty())
            .map(|part| {
                part.parse()
                    .map_or_else(|_| Segment::Field(part.to_owned()), Segment::Index)
            })
            .collect()
    }

    #[test]
    fn a_path_gives_the_slice_it_leads_to() {
        let text = r#" {"a": {"b": [1, {"c": "x,}]"}, 2.50e1 ]}, "e\u0041": true, "a2":null} "#;
        let at = |p: &str| find(text, &path(p));
        assert_eq!(at("a.b.0"), Some("1"));
        assert_eq!(at("a.b.1.c"), Some(r#""x,}]""#));
        assert_eq!(at("a.b.2"), Some("2.50e1"));
        assert_eq!(at("eA"), Some("true"));
        assert_eq!(at("a2"), Some("null"));
        assert_eq!(at("a.b"), Some(r#"[1, {"c": "x,}]"}, 2.50e1 ]"#));
        assert_eq!(at("a.b.3"), None);
        assert_eq!(at("a.x"), None);
        assert_eq!(at("a.b.0.c"), None);
        assert_eq!(find("[]", &path("0")), None);
        assert_eq!(find("{}", &path("a")), None);
    }

    #[test]
    fn of_two_equal_fields_the_last_one_counts() {
        assert_eq!(find(r#"{"a":1,"a":2}"#, &path("a")), Some("2"));
    }

    #[test]
    fn strings_survive_quoting_and_reading() {
        for text in ["", "plain", "a\"b\\c\nd\te\u{1}f", "日本 𝄞"] {
            let quoted = Json::string(text);
            assert_eq!(as_string(quoted.as_str()).as_deref(), Some(text));
        }
        assert_eq!(
            as_string(r#""\ud834\udd1e\/\ud834""#).as_deref(),
            Some("𝄞/\u{fffd}")
        );
        assert_eq!(as_string("12"), None);
    }

    #[test]
    fn an_error_output_has_the_published_form() {
        let output = Json::error("declined", "no \"funds\"");
        assert_eq!(
            output.as_str(),
            r#"{"error":{"code":"declined","message":"no \"funds\""}}"#
        );
    }
}
