//! JSON on the command line: the text itself, `@FILE`, or `-` for stdin.

use crate::argument_source;
use crate::code::Code;
use crate::failure::Failure;
use bytes::Bytes;
use serde::de::IgnoredAny;

/// Reads an optional argument. If it is absent, the bytes are empty and the server uses its
/// default.
///
/// # Errors
/// `input_unreadable` for a file that cannot be read; `json_invalid` for invalid JSON, with its
/// position.
pub(crate) fn read_optional(argument: Option<&str>) -> Result<Bytes, Failure> {
    argument.map_or(Ok(Bytes::new()), read)
}

fn read(argument: &str) -> Result<Bytes, Failure> {
    let text = argument_source::read(argument)?;
    check(&text, argument_source::name(argument))?;
    Ok(text)
}

fn check(text: &[u8], name: &str) -> Result<(), Failure> {
    let Err(error) = serde_json::from_slice::<IgnoredAny>(text) else {
        return Ok(());
    };
    // serde_json's error ends with the position, such as "at line 1 column 5".
    let message = format!("expected {name} to be JSON, but: {error}");
    Err(Failure::new(Code::JsonInvalid, message)
        .with_hint("quote a string twice: '\"text\"'; @FILE reads a file, - reads stdin"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn text_that_is_json_is_passed_on_unchanged() {
        let text = r#" {"b": 1.50, "a": 12345678901234567890123} "#;
        assert_eq!(read(text), Ok(Bytes::from_static(text.as_bytes())));
        assert_eq!(read_optional(None), Ok(Bytes::new()));
    }

    #[test]
    fn text_that_is_not_json_is_refused_with_its_place() {
        let failure = read("{\"a\": tru}").expect_err("not JSON");
        expect![[r#"
            Failure {
                exit: Usage,
                code: "json_invalid",
                message: "expected the argument to be JSON, but: expected ident at line 1 column 10",
                hint: Some(
                    "quote a string twice: '\"text\"'; @FILE reads a file, - reads stdin",
                ),
                violations: [],
            }
        "#]]
        .assert_debug_eq(&failure);
    }
}
