//! The metrics and labels that a PromQL expression names.

use std::collections::BTreeSet;

/// The metrics and labels that an expression names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    /// Each metric, with the labels of its selector.
    pub(super) metrics: Vec<(String, BTreeSet<String>)>,
    /// The labels that aggregations keep, drop or match by.
    pub(super) labels: BTreeSet<String>,
}

/// Keywords that are followed by a list of labels in parentheses.
const GROUPINGS: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];
/// Prefixes of metric names, which functions and keywords do not have.
const PREFIXES: [&str; 3] = ["flotilla_", "process_", "up"];

/// A token of an expression.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text,
    Sign(char),
}

/// The metrics and labels that the expression names.
pub(super) fn named(expression: &str) -> Named {
    let mut named = Named::default();
    let mut tokens = tokens(expression).into_iter().peekable();
    while let Some(token) = tokens.next() {
        let Token::Word(word) = token else { continue };
        if GROUPINGS.contains(&word.as_str()) {
            if tokens.next_if_eq(&Token::Sign('(')).is_some() {
                let inside = tokens
                    .by_ref()
                    .take_while(|token| *token != Token::Sign(')'));
                named.labels.extend(inside.filter_map(Token::into_word));
            }
        } else if PREFIXES.iter().any(|prefix| word.starts_with(prefix)) {
            let mut labels = BTreeSet::new();
            if tokens.next_if_eq(&Token::Sign('{')).is_some() {
                let inside = tokens
                    .by_ref()
                    .take_while(|token| *token != Token::Sign('}'));
                labels.extend(inside.filter_map(Token::into_word));
            }
            named.metrics.push((word, labels));
        }
    }
    named
}

impl Token {
    fn into_word(self) -> Option<String> {
        match self {
            Self::Word(word) => Some(word),
            Self::Text | Self::Sign(_) => None,
        }
    }
}

fn tokens(expression: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = if first == '"' {
            let end = rest[1..].find('"').expect("a text in an expression ends");
            (Token::Text, end + 2)
        } else {
            let is_inside = |character: char| character.is_ascii_alphanumeric() || character == '_';
            let length = rest
                .find(|character| !is_inside(character))
                .unwrap_or(rest.len());
            match length {
                0 => (Token::Sign(first), first.len_utf8()),
                length => (Token::Word(rest[..length].to_owned()), length),
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    tokens
}

#[test]
fn metrics_are_found_with_their_labels() {
    let found = named(
        r#"sum by (a, le) (rate(flotilla_x_bucket{job="by (z)", b!~"}"}[5m])) / on(c) up > vector(1)"#,
    );
    let set = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    let expected = Named {
        metrics: vec![
            ("flotilla_x_bucket".to_owned(), set(&["job", "b"])),
            ("up".to_owned(), set(&[])),
        ],
        labels: set(&["a", "le", "c"]),
    };
    assert_eq!(found, expected);
}
