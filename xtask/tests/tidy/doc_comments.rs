//! A doc comment says more than a single word.

use crate::rust_text;
use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

#[test]
fn no_doc_comment_is_a_single_word() {
    expect_none(&sources(&[".rs"]), single_words);
}

fn single_words(source: &Source) -> Vec<Finding> {
    let split = rust_text::lines(source);
    let texts: Vec<Option<&str>> = source
        .lines()
        .zip(&split)
        .map(|((_, text), line)| doc_text(text, line))
        .collect();
    let mut findings = Vec::new();
    for (index, line) in split.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| texts[before]);
        let after = texts.get(index + 1).copied().flatten();
        if before.is_none() && after.is_none() && texts[index].is_some_and(is_word) {
            let message = "expected a doc comment that says what the item is, but it is one word";
            findings.push(source.finding(line.number, message));
        }
    }
    findings
}

/// The text of a line that is a doc comment.
fn doc_text<'a>(text: &str, line: &'a rust_text::Line) -> Option<&'a str> {
    let text = text.trim_start();
    let is_doc = text.starts_with("///") || text.starts_with("//!");
    let is_comment = line.code.trim().is_empty() && line.strings.is_empty();
    (is_doc && is_comment).then_some(line.comment.trim())
}

/// Whether the text is one word. A code span may stand alone: it is the published form of a variant.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace) && !text.starts_with('`')
}

#[test]
fn planted_single_words_are_found() {
    let text = "\
/// Why.
reason: u8,
    /// Two words.
    other: u8,
/// The first line is longer than
/// one
more: u8,
/// `flo.Completed`
Completed,
// Why.
let text = \"
/// Why.
\";
";
    expect_lines(single_words, &Source::planted("a.rs", text), &[1]);
    let text = "//! Words.\n\nuse a;\n/// Empty.\n";
    expect_lines(single_words, &Source::planted("a.rs", text), &[1, 4]);
}
