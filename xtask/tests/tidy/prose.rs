//! The prose of a file: a document as a whole, the comments of everything else.

use crate::tree::Source;

/// The suffixes of files with prose.
pub(crate) const ENDINGS: [&str; 7] = [".rs", ".md", ".proto", ".toml", ".txt", ".yml", ".yaml"];

/// A word of prose, with the number of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) line: usize,
    /// The word with the punctuation around it.
    pub(crate) text: &'a str,
}

impl<'a> Word<'a> {
    /// The word without the punctuation around it.
    pub(crate) fn bare(&self) -> &'a str {
        self.text.trim_matches(|c: char| !c.is_alphanumeric())
    }
}

/// The words of a file's prose. A sentence may continue in the next line, as the next word.
pub(crate) fn words(source: &Source) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (line, text) in source.lines() {
        let prose = prose(&source.path, text).unwrap_or_default();
        words.extend(prose.split_whitespace().map(|text| Word { line, text }));
    }
    words
}

/// The part of a line that is prose.
fn prose<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let ending = path.rsplit('.').next().unwrap_or_default();
    match ending {
        // The reasons of clippy's bans are strings.
        "md" | "toml" => Some(line.trim_start().trim_start_matches('#')),
        "rs" | "proto" => {
            let start = comment_start(line)?;
            Some(line[start..].trim_start_matches(['/', '!']))
        }
        _ => {
            let start = line.find('#')?;
            let is_comment = line[..start].is_empty() || line[..start].ends_with(' ');
            is_comment.then(|| line[start..].trim_start_matches('#'))
        }
    }
}

/// Where the comment of a line starts: at `//` outside of a string.
fn comment_start(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let (mut position, mut is_in_string) = (0, false);
    while position < bytes.len() {
        let rest = &bytes[position..];
        match rest {
            [b'\\', ..] if is_in_string => position += 1,
            // The quotation mark as a character does not start a string.
            [b'\'', b'"', b'\'', ..] => position += 2,
            [b'"', ..] => is_in_string = !is_in_string,
            // A URL inside a string of several lines is not a comment.
            [b':', b'/', b'/', ..] => position += 2,
            [b'/', b'/', ..] if !is_in_string => return Some(position),
            _ => {}
        }
        position += 1;
    }
    None
}

#[test]
fn comments_are_told_from_code() {
    let text = "\
let url = \"http://a.b\"; // one
let quote = '\"'; // two
let escaped = \"\\\" // no\";
/// three
//! four
code
";
    let planted = Source::planted("a.rs", text);
    let found: Vec<&str> = words(&planted).iter().map(|word| word.text).collect();
    assert_eq!(found, ["one", "two", "three", "four"]);
}

#[test]
fn each_kind_of_file_has_its_prose() {
    let found = |path: &str, text: &str| {
        let planted = Source::planted(path, text);
        let words = words(&planted);
        let words: Vec<String> = words.iter().map(|word| word.bare().to_owned()).collect();
        words.join(" ")
    };
    assert_eq!(found("a.md", "# Title\n(text)\n"), "Title text");
    assert_eq!(
        found("a.toml", "# one\nreason = \"two\"\n"),
        "one reason  two"
    );
    assert_eq!(found("a.txt", "# W1: one\nfail arun-1#1\n"), "W1 one");
    assert_eq!(found("a.yml", "key: value # why\n"), "why");
    assert_eq!(found("a.proto", "string a = 1; // what\n"), "what");
}
