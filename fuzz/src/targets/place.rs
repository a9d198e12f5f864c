//! What holds for every position and every sentence that a reader returns.

use flotilla_dsl::Span;

/// The maximum size of one sentence, in bytes: it is sent in the head of a gRPC response.
const SENTENCE_BYTES_MAX: usize = 2_048;

/// Asserts that the caret is in one of the lines, or right behind its end.
///
/// A caret is at least one character wide, even behind the last character.
pub(super) fn assert_within<'a>(span: Span, mut lines: impl Iterator<Item = &'a str>) {
    let line = lines
        .nth(index(span.line))
        .unwrap_or_else(|| panic!("expected a line of the text, but {span:?} is behind its end"));
    let characters_count = line.chars().count();
    let end = index(span.column) + index(span.length) + 1;
    assert!(
        end <= characters_count.max(index(span.column) + 1),
        "expected the marks of {span:?} to end with the line, which has {characters_count} characters"
    );
    assert!(
        index(span.column) <= characters_count,
        "expected {span:?} to be in the line, which has {characters_count} characters"
    );
}

/// Asserts that the text is one line that a terminal shows unchanged, of bounded length.
pub(super) fn assert_sentence(sentence: &str) {
    assert!(!sentence.is_empty(), "expected a sentence, but it is empty");
    assert!(
        !sentence.contains(char::is_control),
        "expected a sentence without control characters, but it is {sentence:?}"
    );
    assert!(
        sentence.len() <= SENTENCE_BYTES_MAX,
        "expected a sentence of at most {SENTENCE_BYTES_MAX} bytes, but it has {}",
        sentence.len()
    );
}

/// Converts a number that counts from 1 to one that counts from 0.
fn index(number: u32) -> usize {
    usize::try_from(number)
        .ok()
        .and_then(|number| number.checked_sub(1))
        .expect("lines, columns and lengths are counted from 1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn a_caret_outside_of_the_text_is_noticed() {
        let at = |line, column, length| Span {
            line,
            column,
            length,
        };
        let lines = || ["ab", "cd"].into_iter();
        for span in [at(1, 1, 2), at(1, 3, 1), at(2, 2, 1), at(2, 3, 1)] {
            assert_within(span, lines());
        }
        for span in [at(3, 1, 1), at(1, 4, 1), at(1, 2, 2), at(2, 1, 3)] {
            assert!(
                catch_unwind(|| assert_within(span, lines())).is_err(),
                "{span:?}"
            );
        }
    }

    #[test]
    fn a_sentence_that_a_terminal_would_obey_is_noticed() {
        assert_sentence("expected `a`, but found `ä`");
        for sentence in [
            "",
            "a\nb",
            "\u{1b}[31m",
            &"x".repeat(SENTENCE_BYTES_MAX + 1),
        ] {
            assert!(catch_unwind(|| assert_sentence(sentence)).is_err());
        }
    }
}
