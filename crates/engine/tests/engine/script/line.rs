//! Parses one line of a script.

use flotilla_engine::bytes::Bytes;
use flotilla_engine::ids::Namespace;
use std::str::FromStr;

/// A verb, plain words, and options `name=value`; each is taken once, and none may be left over.
pub(crate) struct Line {
    text: String,
    words: Vec<String>,
    options: Vec<(String, String)>,
}

impl Line {
    pub(crate) fn parse(text: &str) -> Self {
        let mut line = Self {
            text: text.to_owned(),
            words: Vec::new(),
            options: Vec::new(),
        };
        for word in split(text) {
            match word.split_once('=') {
                Some((name, value)) if is_option_name(name) => {
                    line.options.push((name.to_owned(), unquote(value)));
                }
                _ => line.words.push(unquote(&word)),
            }
        }
        line
    }

    /// The next plain word, if there is one.
    pub(crate) fn next(&mut self) -> Option<String> {
        (!self.words.is_empty()).then(|| self.words.remove(0))
    }

    /// The next plain word.
    pub(crate) fn word(&mut self) -> String {
        self.next()
            .unwrap_or_else(|| panic!("expected one more word in `{}`", self.text))
    }

    /// Whether plain words are left.
    pub(crate) fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// Whether the plain word `flag` is there.
    pub(crate) fn flag(&mut self, flag: &str) -> bool {
        let position = self.words.iter().position(|word| word == flag);
        position
            .map(|position| self.words.remove(position))
            .is_some()
    }

    /// What is in the parentheses behind a name.
    pub(crate) fn group(&mut self, name: &str) -> Option<String> {
        let inside = |word: &String| {
            let inside = word.strip_prefix(name)?.strip_prefix('(')?;
            inside.strip_suffix(')').map(str::to_owned)
        };
        let position = self.words.iter().position(|word| inside(word).is_some())?;
        inside(&self.words.remove(position))
    }

    /// The value of an option.
    pub(crate) fn option(&mut self, name: &str) -> Option<String> {
        let position = self.options.iter().position(|(found, _)| found == name)?;
        Some(self.options.remove(position).1)
    }

    /// The options that are left.
    pub(crate) fn options(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.options)
    }

    /// The value of an option that is a number.
    pub(crate) fn number<T: FromStr>(&mut self, name: &str) -> Option<T> {
        let value = self.option(name)?;
        Some(self.number_in(&value))
    }

    /// The next plain word, a number.
    pub(crate) fn next_number<T: FromStr>(&mut self) -> T {
        let word = self.word();
        self.number_in(&word)
    }

    /// The namespace that the line names, else the default one.
    pub(crate) fn namespace(&mut self) -> Namespace {
        let name = self.option("namespace");
        name.map_or_else(Namespace::default_namespace, |name| {
            Namespace::new(name).expect("a namespace")
        })
    }

    /// The next plain word as bytes; some names in it stand for [long texts](long_texts).
    pub(crate) fn payload(&mut self) -> Bytes {
        Bytes::from(long_texts(&self.word()).as_str())
    }

    /// Nothing may be left over.
    pub(crate) fn end(self) {
        assert!(
            self.words.is_empty() && self.options.is_empty(),
            "expected no {:?} {:?} in `{}`",
            self.words,
            self.options,
            self.text
        );
    }

    fn number_in<T: FromStr>(&self, text: &str) -> T {
        text.parse()
            .unwrap_or_else(|_| panic!("expected a number, but found {text} in `{}`", self.text))
    }
}

/// Splits at spaces outside strings, objects, arrays and parentheses.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut depth, mut is_in_string) = (0_u32, false);
    for character in text.chars() {
        match character {
            '"' => is_in_string = !is_in_string,
            '{' | '[' | '(' if !is_in_string => depth += 1,
            '}' | ']' | ')' if !is_in_string => depth -= 1,
            _ => {}
        }
        if character.is_whitespace() && depth == 0 && !is_in_string {
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.push(character);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_option_name(name: &str) -> bool {
    name.chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn unquote(word: &str) -> String {
    let inner = word
        .strip_prefix('"')
        .and_then(|word| word.strip_suffix('"'));
    inner.unwrap_or(word).to_owned()
}

/// `LARGE` stands for 600,000 letters, `MEDIUM` for 200,000, and `QUOTES` for 600,000 quotation marks.
pub(crate) fn long_texts(text: &str) -> String {
    let text = text.replace("LARGE", &"x".repeat(600_000));
    let text = text.replace("MEDIUM", &"x".repeat(200_000));
    text.replace("QUOTES", &"\"".repeat(600_000))
}
