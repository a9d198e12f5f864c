//! How deep JSON nests.

/// The deepest nesting of bytes that JSON includes as they are. Deeper texts are valid JSON, but many programs cannot parse
/// them.
pub(super) const DEPTH_MAX: usize = 100;

/// Whether the objects and arrays of a JSON text nest deeper than [`DEPTH_MAX`].
pub(super) fn is_too_deep(text: &str) -> bool {
    let (mut depth, mut is_in_string, mut is_escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match byte {
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b'{' | b'[' if !is_in_string => depth += 1,
            b'}' | b']' if !is_in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_structure_counts() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(!is_too_deep(&nested(DEPTH_MAX)));
        assert!(is_too_deep(&nested(DEPTH_MAX + 1)));
        let text = format!("\"\\\"{}\"", "[".repeat(DEPTH_MAX + 1));
        assert!(!is_too_deep(&text), "{text}");
        assert!(!is_too_deep(&format!("[{}]", vec!["[]"; 500].join(","))));
    }
}
