//! The input that a run begins with (W68).

use crate::definition::Definition;
use crate::json::{self, Json};
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::rejection::{Rejection, check_bytes};
use crate::turn::Turn;
use std::borrow::Cow;

/// An input, with the defaults of the definition for what it lacks.
pub(super) fn complete(
    turn: &mut Turn<'_, '_>,
    definition: &Definition,
    input: Json,
) -> Result<Json, Rejection> {
    let input = match &definition.input_defaults {
        Some(defaults) => {
            let (input, fields_count) = with_defaults(input, defaults);
            turn.spend_units(fields_count);
            input
        }
        None => input,
    };
    check_bytes("the input", input.as_str().len(), PAYLOAD_BYTES_MAX)?;
    Ok(input)
}

/// A default, and whether the input has a value instead.
struct Default<'d> {
    name: Cow<'d, str>,
    key: &'d str,
    value: &'d str,
    is_given: bool,
}

/// An object, with those fields of another one that it lacks, and how many fields were looked at. What is not an object
/// stays as it is.
fn with_defaults(input: Json, defaults: &str) -> (Json, u32) {
    let text = input.as_str().trim_matches(json::is_space);
    let inner = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let Some(inner) = inner else {
        return (input, 0);
    };
    let mut by_name: Vec<Default<'_>> = json::fields(defaults)
        .map(|(key, value)| Default {
            name: json::key_name(key),
            key,
            value,
            is_given: false,
        })
        .collect();
    by_name.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let mut fields_count: u32 = 0;
    for (key, _) in json::fields(text) {
        fields_count = fields_count.saturating_add(1);
        let name = json::key_name(key);
        if let Ok(position) = by_name.binary_search_by(|default| default.name.cmp(&name)) {
            by_name[position].is_given = true;
        }
    }
    let mut inner = inner.trim_matches(json::is_space).to_owned();
    for Default { key, value, .. } in by_name.iter().filter(|default| !default.is_given) {
        let comma = if inner.is_empty() { "" } else { "," };
        inner.push_str(&format!("{comma}{key}:{value}"));
    }
    (Json::from_checked(format!("{{{inner}}}")), fields_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_input_lacks_is_filled_in() {
        let filled = |input: &str| {
            let input = Json::from_checked(input.to_owned());
            let (filled, _) = with_defaults(input, r#"{"n":1,"a b":{"c":[]}}"#);
            filled.as_str().to_owned()
        };
        assert_eq!(filled("{ }"), r#"{"a b":{"c":[]},"n":1}"#);
        assert_eq!(filled(r#"{"x":2}"#), r#"{"x":2,"a b":{"c":[]},"n":1}"#);
        assert_eq!(
            filled(r#"{"\u006e":null,"a b":0}"#),
            r#"{"\u006e":null,"a b":0}"#
        );
        assert_eq!(filled("[1]"), "[1]");
        let all = r#"{"a b":{"c":[]},"n":1}"#;
        assert_eq!(filled(" {}\n"), all);
        assert_eq!(
            filled("\t{ \"x\" : 2 }\r\n"),
            r#"{"x" : 2,"a b":{"c":[]},"n":1}"#
        );
    }
}
