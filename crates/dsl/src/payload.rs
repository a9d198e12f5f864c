//! Whether bytes are JSON that the engine takes as a payload. A library decides that, outside `apply`.

use flotilla_engine::json;
use flotilla_engine::limits::JSON_DEPTH_MAX;
use serde::de::IgnoredAny;
use std::str::{Utf8Error, from_utf8};

/// Why bytes are not a payload.
#[derive(Debug, thiserror::Error)]
pub enum PayloadInvalid {
    /// They are not text.
    #[error("to be JSON in UTF-8, but {0}")]
    NotText(#[from] Utf8Error),
    /// The text is not JSON.
    #[error("to be JSON, but it is not: {0}")]
    NotJson(#[from] serde_json::Error),
    /// It nests deeper than [`JSON_DEPTH_MAX`].
    #[error("to nest at most {JSON_DEPTH_MAX} levels deep, but it has {0}")]
    TooDeep(usize),
}

/// The text of a payload. The size is not checked; empty bytes are not JSON.
///
/// # Errors
/// [`PayloadInvalid`]; its text continues the words "expected the payload".
pub fn text(bytes: &[u8]) -> Result<&str, PayloadInvalid> {
    let text = from_utf8(bytes)?;
    let _: IgnoredAny = serde_json::from_str(text)?;
    // The check above is not recursive and has no limit.
    match json::depth(text) {
        depth if depth > JSON_DEPTH_MAX => Err(PayloadInvalid::TooDeep(depth)),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_one_json_text_in_utf_8_that_is_not_too_deep() {
        assert_eq!(text(b" {\"a\": 1} ").unwrap(), " {\"a\": 1} ");
        assert!(matches!(text(b""), Err(PayloadInvalid::NotJson(_))));
        assert!(matches!(text(b"1 2"), Err(PayloadInvalid::NotJson(_))));
        assert!(matches!(text(b"\"\xff\""), Err(PayloadInvalid::NotText(_))));
        let nested = |depth| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert!(text(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
        let too_deep = nested(JSON_DEPTH_MAX + 1);
        assert!(matches!(
            text(too_deep.as_bytes()),
            Err(PayloadInvalid::TooDeep(_))
        ));
    }
}
