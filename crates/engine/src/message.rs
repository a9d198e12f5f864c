//! Truncation of texts that are stored with runs.

use crate::limits::MESSAGE_BYTES_MAX;

/// Truncates `text` to at most `MESSAGE_BYTES_MAX` bytes, at a character boundary.
pub(crate) fn cut(text: &str) -> String {
    cut_to(text, MESSAGE_BYTES_MAX)
}

/// Truncates `text` to at most `bytes_max` bytes, at a character boundary.
pub(crate) fn cut_to(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}
