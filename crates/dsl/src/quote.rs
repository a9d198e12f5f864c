//! Quotes a user's text in messages.

/// The most that a message shows of a text, in characters.
const SHOWN_CHARACTERS_MAX: usize = 64;

/// The text in quotes, escaped and shortened.
pub(crate) fn quote(text: &str) -> String {
    format!("{:?}", shorten(text))
}

/// The text shortened, with control characters escaped.
pub(crate) fn cut(text: &str) -> String {
    harmless(&shorten(text))
}

/// The text with control characters escaped: a terminal would interpret them.
pub(crate) fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            shown.extend(character.escape_debug());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// The text shortened, otherwise unchanged.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
