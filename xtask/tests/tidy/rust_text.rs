//! Splits a Rust or proto file into its code and the text of its comments and string literals.

use crate::tree::Source;

/// A line of a file, split.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// From 1.
    pub(crate) number: usize,
    /// Without comments and without the content of string literals.
    pub(crate) code: String,
    /// The content of string literals.
    pub(crate) strings: String,
    pub(crate) comment: String,
}

impl Line {
    /// The string literals and the comment.
    pub(crate) fn prose(&self) -> String {
        format!("{} {} ", self.strings, self.comment)
    }
}

/// The state of the scanner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Code,
    /// In a string literal that ends with a quotation mark and this many `#`.
    Text {
        hashes: usize,
        is_raw: bool,
    },
}

/// The lines of a file.
pub(crate) fn lines(source: &Source) -> Vec<Line> {
    let mut place = Place::Code;
    let split = source.lines().map(|(number, text)| {
        let mut line = Line {
            number,
            ..Line::default()
        };
        place = scan(text, place, &mut line);
        line
    });
    split.collect()
}

/// Adds a line's text to its parts; returns the state at the start of the next line.
fn scan(text: &str, from: Place, line: &mut Line) -> Place {
    let (mut place, mut rest) = (from, text);
    while let Some(next) = rest.chars().next() {
        let length = match place {
            Place::Code => {
                if rest.starts_with("//") {
                    line.comment.push_str(rest.trim_start_matches(['/', '!']));
                    return Place::Code;
                }
                let (opened, length) = opening(rest, line.code.ends_with(is_word));
                match opened {
                    Some(opened) => place = opened,
                    None => line.code.push_str(&rest[..length]),
                }
                length
            }
            Place::Text { hashes, is_raw } => {
                let end = format!("\"{}", "#".repeat(hashes));
                if next == '\\' && !is_raw {
                    1 + rest[1..].chars().next().map_or(0, char::len_utf8)
                } else if rest.starts_with(&end) {
                    line.strings.push(' ');
                    place = Place::Code;
                    end.len()
                } else {
                    line.strings.push(next);
                    next.len_utf8()
                }
            }
        };
        rest = &rest[length..];
    }
    place
}

/// The string literal that starts here, if one does, and the length of its opening.
fn opening(rest: &str, is_in_word: bool) -> (Option<Place>, usize) {
    let raw = rest.strip_prefix('r').filter(|_| !is_in_word);
    let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
    if raw.is_some_and(|raw| raw[hashes..].starts_with('"')) {
        let place = Place::Text {
            hashes,
            is_raw: true,
        };
        return (Some(place), 2 + hashes);
    }
    if rest.starts_with("'\"'") {
        return (None, 3);
    }
    if let Some(escaped) = rest.strip_prefix("'\\") {
        let end = escaped.find('\'').map_or(1, |end| end + 3);
        return (None, end);
    }
    if rest.starts_with('"') {
        let place = Place::Text {
            hashes: 0,
            is_raw: false,
        };
        return (Some(place), 1);
    }
    (None, rest.chars().next().map_or(1, char::len_utf8))
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[test]
fn code_comments_and_strings_are_split() {
    let text = "\
let url = \"http://a.b\"; // one
let quote = '\"'; let name = r#\"two \"x\" \"#;
let long = \"three \\
    four \\\" five\"; six
/// seven
";
    let planted = Source::planted("a.rs", text);
    let lines = lines(&planted);
    let code: Vec<&str> = lines.iter().map(|line| line.code.trim()).collect();
    let expected = [
        "let url = ;",
        "let quote = '\"'; let name = ;",
        "let long =",
        "; six",
        "",
    ];
    assert_eq!(code, expected);
    let prose: String = lines.iter().map(Line::prose).collect();
    let words: Vec<&str> = prose.split_whitespace().collect();
    let expected = [
        "http://a.b",
        "one",
        "two",
        "\"x\"",
        "three",
        "four",
        "five",
        "seven",
    ];
    assert_eq!(words, expected);
}
