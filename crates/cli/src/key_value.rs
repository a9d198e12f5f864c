//! `KEY=VALUE` on the command line.

/// Parses a label `KEY=VALUE` with a non-empty key.
///
/// # Errors
/// A sentence, if `=` is missing or the key is empty.
pub(crate) fn parse(text: &str) -> Result<(String, String), String> {
    pair(text, "KEY=VALUE")
}

/// Parses an action and its command, `NAME=CMD`.
///
/// # Errors
/// A sentence, if `=` is missing or the name is empty.
pub(crate) fn parse_command(text: &str) -> Result<(String, String), String> {
    pair(text, "NAME=CMD")
}

fn pair(text: &str, form: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("expected {form}, but it is {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_divides() {
        let pair = |key: &str, value: &str| Ok((key.to_owned(), value.to_owned()));
        assert_eq!(parse("a=b=c"), pair("a", "b=c"));
        assert_eq!(parse("a="), pair("a", ""));
        assert!(parse("=b").is_err());
        assert!(parse("a").is_err());
    }
}
