//! Terms that the glossary bans occur nowhere: names in code, phrases in prose.

use std::collections::BTreeSet;

use crate::rust_text;
use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

const GLOSSARY: &str = "docs/glossary.md";

/// Historical documents, in which banned phrases may occur, as in the glossary itself.
const RECORDS: &str = "docs/adr/";

/// The suffixes of the files with prose.
const ENDINGS: [&str; 11] = [
    ".md", ".rs", ".proto", ".txt", ".yaml", ".yml", ".toml", ".sh", ".py", ".js", ".wat",
];

/// What may follow "is no".
const COMPARATIVES: [&str; 12] = [
    "longer", "more", "less", "fewer", "better", "worse", "larger", "smaller", "later", "earlier",
    "higher", "lower",
];

/// The bans of the glossary.
struct Bans {
    names: BTreeSet<String>,
    phrases: Vec<Phrase>,
}

struct Phrase {
    /// As the glossary writes it.
    text: String,
    /// As it is looked for.
    normal: String,
}

#[test]
fn no_banned_name_is_used() {
    let bans = bans();
    assert!(bans.names.len() > 10, "{GLOSSARY} bans names");
    expect_none(&sources(&[".rs", ".proto"]), |source| names(source, &bans));
}

#[test]
fn no_banned_phrase_is_written() {
    let bans = bans();
    assert!(bans.phrases.len() > 10, "{GLOSSARY} bans phrases");
    expect_none(&sources(&ENDINGS), |source| phrases(source, &bans));
}

#[test]
fn no_sentence_says_that_something_is_no_noun() {
    expect_none(&sources(&ENDINGS), negated_nouns);
}

fn bans() -> Bans {
    let mut documents = sources(&[".md"]).into_iter();
    let glossary = documents.find(|source| source.path == GLOSSARY);
    Bans::read(&glossary.expect("the glossary is in the repository"))
}

impl Bans {
    /// The entries `id:NAME` and `text:WORDS` in the code spans of tables.
    fn read(glossary: &Source) -> Self {
        let rows = glossary.lines().map(|(_, line)| line);
        let rows = rows.filter(|line| line.starts_with('|'));
        let spans: Vec<&str> = rows
            .flat_map(|row| row.split('`').skip(1).step_by(2))
            .collect();
        let of = |prefix: &str| {
            let found = spans.iter().filter_map(|span| span.strip_prefix(prefix));
            found.map(str::to_owned).collect::<Vec<String>>()
        };
        let phrase = |text: String| Phrase {
            normal: normal(&text),
            text,
        };
        Self {
            names: of("id:").into_iter().collect(),
            phrases: of("text:").into_iter().map(phrase).collect(),
        }
    }
}

fn names(source: &Source, bans: &Bans) -> Vec<Finding> {
    let mut findings = Vec::new();
    for line in rust_text::lines(source) {
        let words = line.code.split(|c: char| !is_part(c));
        for word in words.filter(|word| bans.names.contains(*word)) {
            let message = format!("`{word}` is banned: {GLOSSARY} has the term");
            findings.push(source.finding(line.number, message));
        }
    }
    findings
}

fn phrases(source: &Source, bans: &Bans) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, text) in prose(source) {
        for phrase in bans
            .phrases
            .iter()
            .filter(|phrase| text.contains(&phrase.normal))
        {
            let banned = &phrase.text;
            let message = format!("\"{banned}\" is banned: {GLOSSARY} has a plain equivalent");
            findings.push(source.finding(number, message));
        }
    }
    findings
}

/// Sentences that use "is no" where "is not a" is meant. The subject must be in the same line, since the line before
/// may end in "there".
fn negated_nouns(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, text) in prose(source) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_negated = |index: usize| {
            let [verb, no, noun] = words[index..index + 3] else {
                return false;
            };
            let has_subject = words[..index].iter().any(|word| *word != "|");
            matches!(verb, "is" | "are" | "was" | "were")
                && no == "no"
                && has_subject
                && words[index - 1] != "there"
                && noun != "|"
                && !COMPARATIVES.contains(&noun)
        };
        if (1..words.len().saturating_sub(2)).any(is_negated) {
            let message = "expected \"is not a …\", but found \"is no …\"";
            findings.push(source.finding(number, message));
        }
    }
    findings
}

/// The lines of prose with their numbers, in the form in which phrases are looked for.
fn prose(source: &Source) -> Vec<(usize, String)> {
    if source.path == GLOSSARY || source.path.starts_with(RECORDS) {
        return Vec::new();
    }
    if [".rs", ".proto"]
        .iter()
        .any(|end| source.path.ends_with(end))
    {
        let lines = rust_text::lines(source).into_iter();
        return lines
            .map(|line| (line.number, normal(&line.prose())))
            .collect();
    }
    // The input and the output of a script have names and messages that are tested, not written.
    let is_script = source.path.ends_with(".txt");
    let lines = source.lines();
    lines
        .filter(|(_, line)| !is_script || line.starts_with('#'))
        .map(|(number, line)| (number, normal(line)))
        .collect()
}

/// The words in lower case with one space around each; a mark between two words stays between them.
fn normal(text: &str) -> String {
    let mut normal = " ".to_owned();
    for character in text.chars() {
        if is_part(character) || matches!(character, '\'' | '-') {
            normal.extend(character.to_lowercase());
        } else if character.is_whitespace() {
            normal.push(' ');
        } else {
            normal.push_str(" | ");
        }
    }
    let words: Vec<&str> = normal.split_whitespace().collect();
    format!(" {} ", words.join(" "))
}

fn is_part(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn planted_bans() -> Bans {
    let text = "| crew | a pool | | `id:crew`, `text:sails off` |\nprose with `id:other`\n";
    Bans::read(&Source::planted(GLOSSARY, text))
}

#[test]
fn planted_names_are_found() {
    let text = "let crew = 1;\n// crew\nlet crews = \"crew\";\nlet other = 1;\n";
    let planted = Source::planted("a.rs", text);
    expect_lines(|source| names(source, &planted_bans()), &planted, &[1]);
}

#[test]
fn planted_phrases_are_found() {
    let text = "// It Sails off.\nlet sails = off;\nlet text = \"x sails  off y\";\n// it sails offshore\n";
    let planted = Source::planted("a.rs", text);
    expect_lines(|source| phrases(source, &planted_bans()), &planted, &[1, 3]);
    for path in ["a.md", "CHANGELOG.md", "a.yaml", "a.sh", "a.wat"] {
        let planted = Source::planted(path, "It sails off.\n");
        expect_lines(|source| phrases(source, &planted_bans()), &planted, &[1]);
    }
    let planted = Source::planted("a.txt", "# It sails off.\nsails off\n");
    expect_lines(|source| phrases(source, &planted_bans()), &planted, &[1]);
    for path in [GLOSSARY, "docs/adr/0001-a.md"] {
        let planted = Source::planted(path, "It sails off.\n");
        expect_lines(|source| phrases(source, &planted_bans()), &planted, &[]);
    }
}

#[test]
fn planted_negated_nouns_are_found() {
    // Not written out, since this file obeys its own rule.
    let no = "no";
    let text = format!(
        "\
// The key `k` is {no} number.
// There is no number. The key is no longer there, and is no larger than
// is no such key, since the line before may say where.
let text = \"0 is {no} bound\";
let is_no_bound = 1;
// The answer is no.
"
    );
    let planted = Source::planted("a.rs", &text);
    expect_lines(negated_nouns, &planted, &[1, 4]);
}
