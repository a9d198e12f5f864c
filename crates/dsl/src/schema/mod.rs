//! Input schemas: which inputs a workflow's starts may have (W4).
//!
//! The server validates an input before it proposes a start: the log carries the verdict and not
//! the validation (design rule 1).

mod references;

use crate::quote::harmless;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// The only dialect, named by `$schema` if that is given.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// The maximum length of a schema, in bytes. Schemas that people write are a tenth of that.
const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// The maximum length of a message, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 500;

/// A compiled JSON Schema (2020-12, no remote references).
#[derive(Clone, Debug)]
pub struct InputSchema {
    validator: Validator,
    /// How deep a value may nest that it validates, if that is bounded.
    depth_max: Option<u32>,
}

/// Why a text is not a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaInvalid {
    /// The failing part of the schema, as a JSON pointer; empty for the whole.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

/// Why an input does not satisfy a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at {path:?})")]
pub struct SchemaViolation {
    /// The failing part of the input, as a JSON pointer; empty for the whole.
    pub path: String,
    /// What is wrong with it, without repeating it.
    pub message: String,
}

impl InputSchema {
    /// Compiles the JSON text of a schema.
    ///
    /// # Errors
    /// [`SchemaInvalid`] if the text is not a JSON Schema of 2020-12, refers to another document,
    /// or has a pattern that cannot be matched in linear time.
    pub fn compile(text: &str) -> Result<Self, SchemaInvalid> {
        if text.len() > SCHEMA_BYTES_MAX {
            let message = format!(
                "it has {} bytes, and {SCHEMA_BYTES_MAX} are allowed",
                text.len()
            );
            return Err(SchemaInvalid::whole(message));
        }
        let schema: Value = serde_json::from_str(text)
            .map_err(|error| SchemaInvalid::whole(format!("it is not JSON: {error}")))?;
        match schema.get("$schema") {
            None => {}
            Some(Value::String(dialect)) if dialect.trim_end_matches('#') == DIALECT => {}
            Some(dialect) => {
                let found = shorten(&dialect.to_string());
                let message =
                    format!("its dialect is {found}, and the only one known is {DIALECT}");
                return Err(SchemaInvalid {
                    path: "/$schema".to_owned(),
                    message,
                });
            }
        }
        let depth_max = depth_max(references::check(&schema)?);
        // Linear-time patterns: an input must not be able to make its own validation slow.
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(PatternOptions::regex())
            .offline();
        let validator = options.build(&schema).map_err(|error| SchemaInvalid {
            path: error.instance_path().to_string(),
            message: shorten(&error.masked_with("it").to_string()),
        })?;
        Ok(Self {
            validator,
            depth_max,
        })
    }

    /// Validates an input.
    ///
    /// A schema that refers to itself from several places may check a part of a value once for each
    /// way that leads there: it refuses values that nest so deep that these are too many. Call it on
    /// a blocking thread, since schemas and values can be large.
    ///
    /// # Errors
    /// [`SchemaViolation`] names the first part that fails.
    pub fn check(&self, input: &Value) -> Result<(), SchemaViolation> {
        if let Some(depth_max) = self.depth_max
            && depth(input) > depth_max
        {
            return Err(SchemaViolation {
                path: String::new(),
                message: format!(
                    "the value nests deeper than {depth_max} levels, too deep for a schema that refers to itself several times"
                ),
            });
        }
        self.validator
            .validate(input)
            .map_err(|error| SchemaViolation {
                path: shorten(&error.instance_path().to_string()),
                message: shorten(&error.masked_with("the value").to_string()),
            })
    }
}

/// How often a part of a value may be checked because a schema refers to itself.
const CHECKS_OF_PART_MAX: u32 = 1 << 16;

/// How deep a value may nest: each level multiplies the checks by the references that lead back.
/// `None` if there is at most one.
fn depth_max(circles_count: u32) -> Option<u32> {
    // `None` for no reference or one, since no power of these grows.
    CHECKS_OF_PART_MAX.checked_ilog(circles_count)
}

/// How deep a value nests: 0 for a scalar. Its reader bounds the depth.
fn depth(value: &Value) -> u32 {
    let of_parts = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + of_parts.unwrap_or(0)
}

impl SchemaInvalid {
    fn whole(message: String) -> Self {
        Self {
            path: String::new(),
            message,
        }
    }
}

fn shorten(text: &str) -> String {
    let text = harmless(text);
    match text.char_indices().nth(MESSAGE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn violation(schema: &Value, input: &Value) -> (String, String) {
        let schema = InputSchema::compile(&schema.to_string()).expect("the schema is valid");
        schema.check(input).map_or_else(
            |violation| (violation.path, violation.message),
            |()| Default::default(),
        )
    }

    fn refusal(schema: &Value) -> String {
        InputSchema::compile(&schema.to_string())
            .map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
    }

    #[test]
    fn the_failing_part_of_an_input_is_named() {
        let schema = json!({"type": "object", "required": ["id"], "properties": {"items": {"items": {"type": "integer"}}}});
        assert_eq!(
            violation(&schema, &json!({"id": 1, "items": [1, 2]})),
            Default::default()
        );
        let (path, message) = violation(&schema, &json!({"id": 1, "items": [1, "x"]}));
        assert_eq!(
            (path.as_str(), message.as_str()),
            ("/items/1", "the value is not of type \"integer\"")
        );
        let (path, message) = violation(&schema, &json!({}));
        assert_eq!(
            (path.as_str(), message.as_str()),
            ("", "\"id\" is a required property")
        );
    }

    #[test]
    fn a_message_shows_nothing_that_a_terminal_would_obey() {
        let schema = json!({"required": ["i\u{7f}\u{85}"]});
        assert_eq!(
            violation(&schema, &json!({})).1,
            "\"i\\u{7f}\\u{85}\" is a required property"
        );
    }

    #[test]
    fn an_invalid_schema_is_refused() {
        assert!(
            refusal(&json!({"type": "objct"})).contains("it is not valid"),
            "{}",
            refusal(&json!({"type": "objct"}))
        );
        assert!(
            refusal(&json!({"$ref": "https://example.com/other.json"})).contains("example.com")
        );
        assert!(
            refusal(&json!({"$schema": "http://json-schema.org/draft-07/schema#"}))
                .contains("2020-12")
        );
        assert_ne!(refusal(&json!({"pattern": "(?=a)"})), "accepted");
        assert_ne!(refusal(&json!({"pattern": "("})), "accepted");
        assert_eq!(
            refusal(&json!({"$schema": DIALECT, "$defs": {"a": {}}, "$ref": "#/$defs/a"})),
            "accepted"
        );
        assert_eq!(refusal(&json!(true)), "accepted");
    }

    #[test]
    fn references_that_explode_are_refused() {
        let chain = |length: usize, branches: usize| {
            let mut definitions = serde_json::Map::new();
            for index in 0..length {
                let next = json!({"$ref": format!("#/$defs/a{}", index + 1)});
                definitions.insert(format!("a{index}"), json!({"anyOf": vec![next; branches]}));
            }
            definitions.insert(format!("a{length}"), json!({"type": "string"}));
            json!({"$defs": definitions, "$ref": "#/$defs/a0"})
        };
        assert_eq!(refusal(&chain(200, 1)), "accepted");
        assert_eq!(refusal(&chain(10, 2)), "accepted");
        assert!(refusal(&chain(20, 2)).contains("expand to more than"));
        let anchored = json!({"$defs": {"a": {"$anchor": "x", "$id": "other"}}, "$ref": "#x"});
        assert!(refusal(&anchored).contains("`$id` below its top"));
        assert!(refusal(&json!({"title": "x".repeat(64 << 10)})).contains("bytes"));
    }

    #[test]
    fn a_schema_that_refers_to_itself_several_times_takes_no_deep_values() {
        let twice = json!({"properties": {"a": {"$ref": "#"}}});
        let schema = json!({"type": "object", "anyOf": [twice, twice]});
        let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));
        assert_eq!(violation(&schema, &nested(15)), Default::default());
        let (_, message) = violation(&schema, &nested(90));
        assert!(message.contains("deeper than 16 levels"), "{message}");
        let once = json!({"properties": {"a": {"$ref": "#"}}, "type": "object"});
        assert_eq!(violation(&once, &nested(90)), Default::default());
    }

    #[test]
    fn a_schema_that_refers_to_itself_does_no_harm() {
        let tree = json!({"properties": {"child": {"$ref": "#"}}, "type": "object"});
        assert_eq!(
            violation(&tree, &json!({"child": {"child": 1}})).0,
            "/child/child"
        );
        for circle in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"not": {"$ref": "#"}}),
        ] {
            if let Ok(schema) = InputSchema::compile(&circle.to_string()) {
                let _ = schema.check(&json!({}));
            }
        }
    }
}
