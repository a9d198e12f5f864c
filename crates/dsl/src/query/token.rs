//! Splits a query into tokens.

use super::QueryInvalid;
use flotilla_engine::view::Comparison;
use std::ops::Range;

/// A token and its bytes in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) place: Range<usize>,
}

/// The kind of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A field's name, `and`, `true`, `false`.
    Name(&'a str),
    /// A comparison operator.
    Comparison(Comparison),
    /// A string, without its quotes; two quotes within it stand for one.
    String(String),
    /// A token that begins like a number: a number or a time.
    Number(&'a str),
}

/// The tokens of `text` in order.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, QueryInvalid> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let start = text.len() - rest.len();
        let (kind, length) = match first {
            '\'' => string(text, start)?,
            '=' | '!' | '<' | '>' => comparison(text, start)?,
            '-' | '+' | '0'..='9' => {
                let length = length_of(rest, |c| c.is_ascii_alphanumeric() || "_.:+-".contains(c));
                (Kind::Number(&rest[..length]), length)
            }
            first if first.is_ascii_alphabetic() || first == '_' => {
                let length = length_of(rest, |c| c.is_ascii_alphanumeric() || "_-".contains(c));
                (Kind::Name(&rest[..length]), length)
            }
            other => return Err(unknown(text, start, other)),
        };
        let place = start..start + length;
        tokens.push(Token { kind, place });
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn length_of(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// A string that begins at `start`, and its length with its quotes.
fn string(text: &str, start: usize) -> Result<(Kind<'_>, usize), QueryInvalid> {
    let mut content = String::new();
    let mut characters = text[start + 1..].char_indices().peekable();
    while let Some((offset, character)) = characters.next() {
        if character != '\'' {
            content.push(character);
        } else if characters.next_if(|(_, next)| *next == '\'').is_some() {
            content.push('\'');
        } else {
            return Ok((Kind::String(content), offset + 2));
        }
    }
    let message = "expected the string to end with a single quote, but the text ends";
    Err(QueryInvalid::new(text, start..text.len(), message))
}

fn comparison(text: &str, start: usize) -> Result<(Kind<'_>, usize), QueryInvalid> {
    let length = length_of(&text[start..], |c| "=!<>".contains(c));
    let word = &text[start..start + length];
    let comparison = match word {
        "=" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::Greater,
        ">=" => Comparison::GreaterOrEqual,
        other => {
            let message = format!("expected a comparison, but found `{other}`");
            let invalid = QueryInvalid::new(text, start..start + length, message);
            return Err(invalid.hint(match other {
                "==" => "equality is a single `=`",
                "<>" => "the opposite of `=` is `!=`",
                _ => "the comparisons are `=`, `!=`, `<`, `<=`, `>` and `>=`",
            }));
        }
    };
    Ok((Kind::Comparison(comparison), length))
}

fn unknown(text: &str, start: usize, character: char) -> QueryInvalid {
    let shown = if character.is_control() {
        character.escape_debug().to_string()
    } else {
        character.to_string()
    };
    let message = format!("expected a field, a comparison or a value, but found `{shown}`");
    let invalid = QueryInvalid::new(text, start..start + character.len_utf8(), message);
    match character {
        '"' | '`' | '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}' => {
            invalid.hint("put strings in single quotes: 'failed'")
        }
        '(' | ')' | '|' | '&' => invalid.hint("conditions can only be joined by `and`"),
        _ => invalid,
    }
}
