//! The parser's messages, reworded.

use super::ExpressionError;
use crate::Code;
use cel::ParseErrors;

/// The first error that the parser found.
pub(super) fn of_parser(text: &str, errors: &ParseErrors) -> ExpressionError {
    let Some(first) = errors.errors.first() else {
        return ExpressionError::new(Code::E517, 1, "expected a CEL expression");
    };
    let column = column(text, first.pos);
    let message = first.msg.lines().next().unwrap_or_default();
    if message.contains("Recursion limit") {
        return super::lower::too_deep(column);
    }
    let mut error = ExpressionError::new(Code::E517, column, reworded(message));
    error.hint = hint(text, column).map(str::to_owned);
    error
}

/// A hint, if the text at the error is the syntax of another language.
fn hint(text: &str, column: usize) -> Option<&'static str> {
    let at = text.char_indices().nth(column - 1)?.0;
    let (before, rest) = text.split_at(at);
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let word_end = rest.find(|character| !is_part(character));
    let word = &rest[..word_end.unwrap_or(rest.len())];
    let word_before = before.trim_end().rsplit(|character| !is_part(character));
    match word {
        "and" => Some("write `&&`"),
        "or" => Some("write `||`"),
        _ if word_before.take(1).eq(["not"]) => Some("write `!` instead of `not`"),
        _ if rest.starts_with('=') && !rest.starts_with("==") => {
            Some("two values are compared with `==`")
        }
        _ if rest.starts_with('$') => Some("in an expression, `$.input` is written `input`"),
        _ => None,
    }
}

/// The position in characters from 1 of a line and column.
fn column(text: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line - 1).unwrap_or(0);
    let column = usize::try_from(column - 1).unwrap_or(0);
    let before = text.split_inclusive('\n').take(line);
    before.map(|line| line.chars().count()).sum::<usize>() + column + 1
}

/// A message of the generated parser in plain words.
fn reworded(message: &str) -> String {
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message = message
        .split_once(" expecting ")
        .map_or(message, |(found, _)| found);
    for (prefix, unexpected) in [
        ("token recognition error at: ", "unexpected character "),
        ("extraneous input ", "unexpected "),
        ("mismatched input ", "unexpected "),
        ("no viable alternative at input ", "unexpected "),
    ] {
        if let Some(found) = message.strip_prefix(prefix) {
            return match found {
                "'<EOF>'" => "the expression is incomplete".to_owned(),
                found => format!("{unexpected}{}", printable(found)),
            };
        }
    }
    if message.starts_with("Incomplete ") {
        return "the expression is incomplete".to_owned();
    }
    if message.contains(" { ") {
        // A value of the parser's own, for its developers.
        return "invalid literal".to_owned();
    }
    printable(message)
}

/// The text, with control characters as escapes.
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => printable.extend(character.escape_unicode()),
            false => printable.push(character),
        }
    }
    printable
}
