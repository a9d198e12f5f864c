//! The type of a plain scalar, by YAML's core schema.

use super::Kind;

/// Longer scalars are strings, whatever they look like; numbers in JSON's grammar are not limited.
const TYPED_BYTES_MAX: usize = 64;

/// The value of a scalar that was written without quotes.
///
/// `Err` for the numbers that JSON does not have: `.inf` and `.nan`.
pub(super) fn resolve(text: &str) -> Result<Kind, ()> {
    if is_json_number(text) {
        return Ok(Kind::Number(text.into()));
    }
    if !may_be_typed(text) {
        return Ok(Kind::String(text.into()));
    }
    match serde_yaml::from_str::<serde_yaml::Value>(text) {
        Ok(serde_yaml::Value::Null) => Ok(Kind::Null),
        Ok(serde_yaml::Value::Bool(value)) => Ok(Kind::Bool(value)),
        Ok(serde_yaml::Value::Number(number)) => {
            let text = number.to_string();
            if is_json_number(&text) {
                Ok(Kind::Number(text.into()))
            } else {
                Err(())
            }
        }
        _ => Ok(Kind::String(text.into())),
    }
}

/// Whether the text is a number as JSON writes it.
fn is_json_number(text: &str) -> bool {
    let is_begun = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    is_begun && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// Whether the core schema could give it another type than string: spares most scalars the decoder.
fn may_be_typed(text: &str) -> bool {
    text.len() <= TYPED_BYTES_MAX
        && text
            .chars()
            .next()
            .is_none_or(|first| first.is_ascii_digit() || "+-.~tTfFnN".contains(first))
}

#[cfg(test)]
mod tests {
    use super::{Kind, resolve};

    fn number(text: &str) -> Result<Kind, ()> {
        Ok(Kind::Number(text.into()))
    }

    #[test]
    fn plain_scalars_have_the_types_of_the_core_schema() {
        for null in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(resolve(null), Ok(Kind::Null), "{null}");
        }
        assert_eq!(resolve("true"), Ok(Kind::Bool(true)));
        assert_eq!(resolve("FALSE"), Ok(Kind::Bool(false)));
        assert_eq!(resolve("0x1F"), number("31"));
        assert_eq!(resolve("+5"), number("5"));
        assert_eq!(resolve(".5"), number("0.5"));
        for string in [
            "yes",
            "off",
            "1.0.0",
            "0 9 * * 1-5",
            "1_000",
            "nowhere",
            "-",
            "$.input",
        ] {
            assert_eq!(resolve(string), Ok(Kind::String(string.into())));
        }
    }

    #[test]
    fn numbers_keep_every_digit() {
        for text in ["1.0", "0.10", "-3", "123456789012345678901234567890", "1e3"] {
            assert_eq!(resolve(text), number(text));
        }
    }

    #[test]
    fn numbers_that_json_lacks_are_refused() {
        for text in [".inf", "-.inf", ".nan"] {
            assert_eq!(resolve(text), Err(()), "{text}");
        }
    }
}
