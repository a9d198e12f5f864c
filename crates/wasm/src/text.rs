//! WebAssembly text, for modules that are small enough to be written by hand.

use crate::rejection::ModuleRejected;
use std::borrow::Cow;

/// Converts WebAssembly text (`.wat`) to a binary module; a binary module is returned unchanged.
///
/// Only the form is checked: [`inspect`](crate::inspect) checks whether the module is valid.
///
/// # Errors
/// [`ModuleRejected::MalformedText`] for bytes that are neither.
pub fn to_binary(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ModuleRejected> {
    wat::parse_bytes(bytes).map_err(|error| ModuleRejected::MalformedText {
        reason: shown_lines(&error.to_string()),
    })
}

/// The most that a message shows of one line of a module's text, in characters.
const SHOWN_CHARACTERS_MAX: usize = 128;
/// The most that it shows of a multi-line text, in lines.
const SHOWN_LINES_MAX: usize = 8;

/// The text shortened, with control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for (position, character) in text.chars().enumerate() {
        if position == SHOWN_CHARACTERS_MAX {
            shown.push('…');
            break;
        }
        if character.is_control() {
            shown.extend(character.escape_debug());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// As [`shown`], line by line.
fn shown_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().take(SHOWN_LINES_MAX).map(shown).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_a_binary_and_a_binary_passes_unchanged() {
        let binary = to_binary(b"(module)").unwrap();
        assert_eq!(&binary[..4], b"\0asm");
        assert!(matches!(to_binary(&binary), Ok(Cow::Borrowed(same)) if same == &*binary));
    }

    #[test]
    fn other_bytes_are_refused_with_the_place() {
        let rejected = to_binary(b"(module (func").unwrap_err();
        assert!(
            rejected
                .to_string()
                .starts_with("expected WebAssembly text, but "),
            "{rejected}"
        );
        assert!(rejected.to_string().contains(":1:"), "{rejected}");
        assert!(to_binary(&[0xff, 0xfe]).is_err());
    }
}
