//! Terms that the glossary bans occur nowhere: names in code, phrases in prose.

use std::collections::BTreeSet;

use crate::rust_text;
use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

const GLOSSARY: &str = "docs/glossary.md";

/// Where banned terms may occur: the glossary itself, historical documents, and third-party texts.
const EXEMPT: [&str; 2] = [GLOSSARY, "CHANGELOG.md"];

const RECORDS: &str = "docs/adr/";

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
    let read = sources(&[".md", ".rs", ".proto"]);
    expect_none(&read, |source| phrases(source, &bans));
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
    if EXEMPT.contains(&source.path.as_str()) || source.path.starts_with(RECORDS) {
        return Vec::new();
    }
    let prose: Vec<(usize, String)> = if source.path.ends_with(".md") {
        let lines = source.lines();
        lines.map(|(number, line)| (number, normal(line))).collect()
    } else {
        let lines = rust_text::lines(source).into_iter();
        lines
            .map(|line| (line.number, normal(&line.prose())))
            .collect()
    };
    let mut findings = Vec::new();
    for (number, text) in prose {
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
    let planted = Source::planted("a.md", "It sails off.\n");
    expect_lines(|source| phrases(source, &planted_bans()), &planted, &[1]);
}
