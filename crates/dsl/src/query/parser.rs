//! Parses tokens to conditions.

use super::token::{Kind, Token, tokens};
use super::{CONDITIONS_MAX, QueryInvalid, condition};
use crate::quote::cut;
use flotilla_engine::view::{Comparison, RunQuery};
use std::ops::Range;

/// Parses conditions that are joined by `and`.
pub(super) fn parse(text: &str) -> Result<RunQuery, QueryInvalid> {
    let mut parser = Parser {
        text,
        tokens: tokens(text)?.into_iter(),
        end: text.trim_end().len(),
    };
    let mut query = RunQuery::default();
    let Some(mut first) = parser.tokens.next() else {
        return Ok(query);
    };
    loop {
        let written = parser.written(first)?;
        if query.conditions.len() == CONDITIONS_MAX {
            let message =
                format!("expected at most {CONDITIONS_MAX} conditions, but this is one more");
            return Err(QueryInvalid::new(text, written.field.place, message));
        }
        query.conditions.push(condition::read(text, written)?);
        let Some(joint) = parser.tokens.next() else {
            return Ok(query);
        };
        parser.check_joint(&joint)?;
        first = parser.next("a condition after `and`")?;
    }
}

/// A condition as it is written.
pub(super) struct Written<'a> {
    pub(super) field: Token<'a>,
    pub(super) comparison: Comparison,
    pub(super) comparison_place: Range<usize>,
    pub(super) value: Token<'a>,
}

struct Parser<'a> {
    text: &'a str,
    tokens: std::vec::IntoIter<Token<'a>>,
    /// Where the last word ends.
    end: usize,
}

impl<'a> Parser<'a> {
    fn written(&mut self, field: Token<'a>) -> Result<Written<'a>, QueryInvalid> {
        if !matches!(field.kind, Kind::Name(_)) {
            let message = format!("expected a field, but found {}", self.shown(&field));
            let invalid = QueryInvalid::new(self.text, field.place, message);
            return Err(invalid.hint(FIELDS));
        }
        let found = self.next("a comparison")?;
        let Kind::Comparison(comparison) = found.kind else {
            let message = format!("expected a comparison, but found {}", self.shown(&found));
            let invalid = QueryInvalid::new(self.text, found.place, message);
            return Err(invalid.hint("the comparisons are `=`, `!=`, `<`, `<=`, `>` and `>=`"));
        };
        let value = self.next("a value")?;
        Ok(Written {
            field,
            comparison,
            comparison_place: found.place,
            value,
        })
    }

    fn check_joint(&self, joint: &Token<'a>) -> Result<(), QueryInvalid> {
        if matches!(joint.kind, Kind::Name(name) if name.eq_ignore_ascii_case("and")) {
            return Ok(());
        }
        let message = format!("expected `and` or the end, but found {}", self.shown(joint));
        let invalid = QueryInvalid::new(self.text, joint.place.clone(), message);
        Err(match joint.kind {
            Kind::Name(name) if name.eq_ignore_ascii_case("or") => {
                invalid.hint("there is no `or`: use two queries")
            }
            Kind::Name(_) | Kind::Comparison(_) | Kind::String(_) | Kind::Number(_) => invalid,
        })
    }

    /// The next token, which must exist.
    fn next(&mut self, wanted: &str) -> Result<Token<'a>, QueryInvalid> {
        self.tokens.next().ok_or_else(|| {
            let message = format!("expected {wanted}, but the text ends");
            QueryInvalid::new(self.text, self.end..self.end, message)
        })
    }

    fn shown(&self, token: &Token<'a>) -> String {
        let word = cut(&self.text[token.place.clone()]);
        if word.starts_with('\'') {
            format!("the string {word}")
        } else {
            format!("`{word}`")
        }
    }
}

const FIELDS: &str =
    "the fields are workflow, status, started_at, completed_at and the names of search attributes";
