//! WebAssembly text, for modules that are small enough to be written by hand.

use crate::rejection::ModuleRejected;
use std::borrow::Cow;

/// Turns WebAssembly text (`.wat`) into a binary module; a binary module passes unchanged.
///
/// Only the form is looked at: [`inspect`](crate::inspect) says whether the module is sound.
///
/// # Errors
/// [`ModuleRejected::MalformedText`] for bytes that are neither.
pub fn to_binary(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ModuleRejected> {
    wat::parse_bytes(bytes).map_err(|error| ModuleRejected::MalformedText {
        reason: shown_lines(&error.to_string()),
    })
}

/// What a message shows of a module's text in one line, in characters.
const SHOWN_CHARACTERS_MAX: usize = 128;
/// What it shows of a text of several lines.
const SHOWN_LINES_MAX: usize = 8;

/// The text cut to a length that a message can bear, without what a terminal would obey.
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
