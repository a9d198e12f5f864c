//! Expressions (W64): CEL text to a compiled form, evaluated over sample data.

use crate::target::{Target, Verdict};
use flotilla_dsl::expression::Data;
use flotilla_engine::limits::EXPRESSION_COST_MAX;
use std::sync::LazyLock;

pub(super) const TARGET: Target = Target {
    name: "expression",
    summary: "expressions: compiled or refused with a place in the text; evaluated the same each time, within their cost",
    tokens: &[
        "input",
        "state",
        ".",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ",",
        ":",
        "?",
        "0",
        "1",
        "-1",
        "1u",
        "1.5",
        "9223372036854775807",
        "1e308",
        "'a'",
        "\"é\"",
        "b'\\xff'",
        "r'\\d+'",
        "null",
        "true",
        "false",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        " in ",
        ".all(x, ",
        ".exists(x, ",
        ".exists_one(x, ",
        ".filter(x, ",
        ".map(x, ",
        "has(",
        "size(",
        ".matches('",
        ".contains(",
        ".startsWith(",
        "int(",
        "uint(",
        "double(",
        "string(",
        "bytes(",
        "bool(",
        "type(",
        "dyn(",
        "timestamp(",
        "duration(",
        "'2026-01-31T09:00:00Z'",
        "'1h30m'",
        ".getHours('+01:00')",
        ".getFullYear()",
        "input.n",
        "input.list",
        "input.text",
        "[[:alpha:]]",
        "(a|b)*",
        "{2,3}",
        "(?i)",
        "^",
        "$",
        "`a-b`",
    ],
    check,
};

/// What the names in an expression stand for.
static DATA: LazyLock<Data> = LazyLock::new(|| {
    let data = r#"{"input": {"n": 7, "d": 1.5, "list": [1, "a", null, [2], {"k": true}], "text": "aab é",
        "a-b": {"n": 1, "n": 2}, "big": 18446744073709551615, "huge": 1e400}, "state": {}}"#;
    Data::parse(data).expect("the data is JSON")
});

fn check(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Verdict::Refused;
    };
    let evaluated = match DATA.evaluate(text) {
        Ok(evaluated) => evaluated,
        Err(error) => {
            assert!(!error.message.is_empty());
            // A position behind the last character is the end.
            assert!(
                (1..=text.chars().count() + 2).contains(&error.column),
                "{error:?}"
            );
            return Verdict::Refused;
        }
    };
    assert!(evaluated.cost <= EXPRESSION_COST_MAX);
    let json = evaluated.value.and_then(|value| value.to_json());
    if let Ok(json) = &json {
        // A number that no double can be is passed on as it is.
        let is_huge = json.as_str().contains("1e400");
        let read = serde_json::from_str::<serde_json::Value>(json.as_str());
        assert!(is_huge || read.is_ok(), "{}", json.as_str());
    }
    let again = DATA.evaluate(text).expect("it was compiled before");
    let again_json = again.value.and_then(|value| value.to_json());
    assert_eq!((json, evaluated.cost), (again_json, again.cost), "{text:?}");
    Verdict::Accepted
}
