//! Numbers of bytes on the command line.

/// Parses a number of bytes.
///
/// # Errors
/// A sentence, if the text is another number or has a unit.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let expected =
        || format!("expected a number of bytes, such as 536870912 for 512 MiB, but it is {text:?}");
    text.parse().map_err(|_| expected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_refused_with_an_example() {
        assert_eq!(parse("536870912"), Ok(512 << 20));
        let said = "expected a number of bytes, such as 536870912 for 512 MiB, but it is ";
        for text in ["512MiB", "-1", "1e9", ""] {
            assert_eq!(parse(text), Err(format!("{said}{text:?}")));
        }
    }
}
