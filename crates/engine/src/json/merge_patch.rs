//! Patches of JSON values (RFC 7396).

use super::{fields, key_name};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A field of the result: its value before, and in the patch.
struct Field<'t> {
    /// Its name, in quotation marks, as the value has it, or the patch.
    key: &'t str,
    before: Option<&'t str>,
    patch: Option<&'t str>,
}

/// A JSON value after a merge patch (RFC 7396): the fields of an object replace those of the value, in depth, and `null`
/// removes them. A patch of another type replaces the value. Both are valid JSON, without spaces around them.
#[must_use]
pub fn merge_patch(value: &str, patch: &str) -> String {
    let mut out = String::with_capacity(value.len() + patch.len());
    write(Some(value), patch, &mut out);
    out
}

fn write(before: Option<&str>, patch: &str, out: &mut String) {
    if !patch.starts_with('{') {
        out.push_str(patch);
        return;
    }
    out.push('{');
    let mut is_first = true;
    for field in merged(before.unwrap_or_default(), patch) {
        if field.patch == Some("null") {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(',');
        }
        out.push_str(field.key);
        out.push(':');
        match (field.before, field.patch) {
            (before, Some(patch)) => write(before, patch, out),
            (Some(before), None) => out.push_str(before),
            (None, None) => {}
        }
    }
    out.push('}');
}

/// The fields of both, each once, in the order in which their names first occur.
fn merged<'t>(before: &'t str, patch: &'t str) -> Vec<Field<'t>> {
    let mut merged: Vec<Field<'t>> = Vec::new();
    let mut positions: BTreeMap<Cow<'t, str>, usize> = BTreeMap::new();
    let before = fields(before).map(|(key, value)| (key, Some(value), None));
    let patch = fields(patch).map(|(key, value)| (key, None, Some(value)));
    for (key, before, patch) in before.chain(patch) {
        let position = *positions.entry(key_name(key)).or_insert(merged.len());
        if position == merged.len() {
            merged.push(Field {
                key,
                before: None,
                patch: None,
            });
        }
        let field = &mut merged[position];
        field.before = before.or(field.before);
        field.patch = patch.or(field.patch);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7396, appendix A.
    #[test]
    fn the_examples_of_the_rfc() {
        let examples = [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ];
        for (value, patch, result) in examples {
            assert_eq!(merge_patch(value, patch), result, "{value} {patch}");
        }
    }

    #[test]
    fn names_are_compared_unescaped_and_numbers_stay_as_they_are() {
        let value = r#"{"\u0061":1.50,"b":{"x":10000000000000000001}}"#;
        assert_eq!(
            merge_patch(value, r#"{"a":2.0,"b":{"y":-0}}"#),
            r#"{"\u0061":2.0,"b":{"x":10000000000000000001,"y":-0}}"#
        );
    }
}
