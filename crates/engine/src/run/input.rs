//! The input that a run begins with (W68).

use crate::definition::Definition;
use crate::json::{self, Json};
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::rejection::{Rejection, check_bytes};
use std::collections::BTreeSet;

/// An input, with the defaults of the definition for what it lacks.
pub(crate) fn complete(definition: &Definition, input: Json) -> Result<Json, Rejection> {
    let input = match &definition.input_defaults {
        Some(defaults) => with_defaults(input, defaults),
        None => input,
    };
    check_bytes("the input", input.as_str().len(), PAYLOAD_BYTES_MAX)?;
    Ok(input)
}

/// An object, with those fields of another one that it lacks. What is not an object stays as it is.
fn with_defaults(input: Json, defaults: &str) -> Json {
    let text = input.as_str();
    let inner = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let Some(inner) = inner else {
        return input;
    };
    let given: BTreeSet<_> = json::fields(text)
        .map(|(key, _)| json::key_name(key))
        .collect();
    let mut inner = inner.trim_matches(json::is_space).to_owned();
    for (key, value) in json::fields(defaults) {
        if !given.contains(&json::key_name(key)) {
            let comma = if inner.is_empty() { "" } else { "," };
            inner.push_str(&format!("{comma}{key}:{value}"));
        }
    }
    Json::from_checked(format!("{{{inner}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_input_lacks_is_filled_in() {
        let filled = |input: &str| {
            let input = Json::from_checked(input.to_owned());
            with_defaults(input, r#"{"n":1,"a b":{"c":[]}}"#)
                .as_str()
                .to_owned()
        };
        assert_eq!(filled("{ }"), r#"{"n":1,"a b":{"c":[]}}"#);
        assert_eq!(filled(r#"{"x":2}"#), r#"{"x":2,"n":1,"a b":{"c":[]}}"#);
        assert_eq!(
            filled(r#"{"\u006e":null,"a b":0}"#),
            r#"{"\u006e":null,"a b":0}"#
        );
        assert_eq!(filled("[1]"), "[1]");
    }
}
