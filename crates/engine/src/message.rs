//! Truncation of messages that are stored with runs.

use crate::limits::MESSAGE_BYTES_MAX;

/// Truncates `text` to at most `MESSAGE_BYTES_MAX` bytes, at a character boundary.
pub(crate) fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(MESSAGE_BYTES_MAX);
    text[..end].to_owned()
}
