//! The prose of a file: a document as a whole, the comments of everything else.

use crate::rust_text;
use crate::tree::Source;

/// The suffixes of files with prose.
pub(crate) const ENDINGS: [&str; 7] = [".rs", ".md", ".proto", ".toml", ".txt", ".yml", ".yaml"];

/// A word of prose, with the number of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) line: usize,
    /// The word with the punctuation around it.
    pub(crate) text: String,
}

impl Word {
    /// The word without the punctuation around it.
    pub(crate) fn bare(&self) -> &str {
        self.text.trim_matches(|c: char| !c.is_alphanumeric())
    }
}

/// The words of a file's prose. A sentence may continue in the next line, as the next word.
pub(crate) fn words(source: &Source) -> Vec<Word> {
    let is_code = [".rs", ".proto"]
        .iter()
        .any(|end| source.path.ends_with(end));
    if is_code {
        let lines = rust_text::lines(source);
        let words = lines
            .iter()
            .flat_map(|line| of_line(line.number, &line.comment));
        return words.collect();
    }
    // The reasons of clippy's bans are strings.
    let is_whole = [".md", ".toml"]
        .iter()
        .any(|end| source.path.ends_with(end));
    let prose = |line| if is_whole { line } else { hash_comment(line) };
    let lines = source.lines();
    lines
        .flat_map(|(number, line)| of_line(number, prose(line)))
        .collect()
}

/// The words of a line's prose.
fn of_line(line: usize, prose: &str) -> impl Iterator<Item = Word> {
    let words = prose
        .trim_start()
        .trim_start_matches('#')
        .split_whitespace();
    words.map(move |text| Word {
        line,
        text: text.to_owned(),
    })
}

/// The comment of a line, which starts at a `#` at the beginning or after a space.
fn hash_comment(line: &str) -> &str {
    let start = line.find('#').filter(|start| {
        let before = &line[..*start];
        before.is_empty() || before.ends_with(' ')
    });
    start.map_or("", |start| &line[start..])
}

#[test]
fn comments_are_distinguished_from_code() {
    let text = "\
let url = \"http://a.b\"; // one
let quote = '\"'; // two
let escaped = \"\\\" // no\";
/// three
//! four
code
";
    let planted = Source::planted("a.rs", text);
    let found: Vec<String> = words(&planted).into_iter().map(|word| word.text).collect();
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
