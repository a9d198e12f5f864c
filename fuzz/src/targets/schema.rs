//! JSON Schemas of inputs (W4). The first line is a schema, the rest an input.

use super::place::assert_sentence;
use crate::target::{Target, Verdict};
use flotilla_dsl::schema::{InputSchema, SchemaInvalid};
use serde_json::Value;

pub(super) const TARGET: Target = Target {
    name: "schema",
    summary: "input schemas: compiled and checked in bounded time; what fails is named by its path",
    tokens: &[
        "{\"type\":\"object\"}",
        "\"properties\":{",
        "\"required\":[",
        "\"$ref\":\"#\"",
        "\"$ref\":\"#/$defs/a\"",
        "\"$defs\":{\"a\":",
        "\"anyOf\":[",
        "\"allOf\":[",
        "\"not\":",
        "\"items\":",
        "\"pattern\":\"^a+$\"",
        "\"format\":\"date\"",
        "\"const\":",
        "\"enum\":[",
        "\"$anchor\":\"x\"",
        "\"$dynamicRef\":\"#x\"",
        "\"minLength\":",
        "\"multipleOf\":0.1",
        "\n",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "true",
        "null",
        "1e9",
        "~1",
        "/",
    ],
    check,
};

fn check(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Verdict::Refused;
    };
    let (schema, input) = text.split_once('\n').unwrap_or((text, "null"));
    let compiled = match InputSchema::compile(schema) {
        Ok(compiled) => compiled,
        Err(invalid) => {
            check_refusal(&invalid, schema);
            return Verdict::Refused;
        }
    };
    if let Ok(input) = serde_json::from_str::<Value>(input) {
        check_input(&compiled, &input);
    }
    Verdict::Accepted
}

fn check_refusal(invalid: &SchemaInvalid, schema: &str) {
    assert_sentence(&invalid.message);
    if !invalid.path.is_empty() {
        assert_names_part(
            &invalid.path,
            &serde_json::from_str(schema).expect("it has parts"),
        );
    }
}

fn check_input(schema: &InputSchema, input: &Value) {
    let verdict = schema.check(input);
    assert_eq!(schema.check(input), verdict, "asked again");
    if let Err(violation) = verdict {
        assert_sentence(&violation.message);
        assert_names_part(&violation.path, input);
    }
}

fn assert_names_part(pointer: &str, whole: &Value) {
    let part = whole.pointer(pointer);
    assert!(
        part.is_some(),
        "expected {pointer:?} to name a part of {whole}"
    );
}
