//! Showing pieces of a user's text in messages.

/// What a message shows of a text at most, in characters.
const SHOWN_CHARACTERS_MAX: usize = 64;

/// The text in quotes, escaped, cut to a length that a message can bear.
pub(crate) fn quote(text: &str) -> String {
    format!("{:?}", shorten(text))
}

/// The text cut to a length that a message can bear, without what a terminal would obey.
pub(crate) fn cut(text: &str) -> String {
    harmless(&shorten(text))
}

/// The text with its control characters escaped: a terminal would obey them.
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

/// The text as it is, cut to a length that a message can bear.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
