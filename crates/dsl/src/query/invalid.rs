//! An error in a query, with its position.

use crate::Span;
use crate::render::Excerpt;
use std::ops::Range;

/// Why a text is not a query. Its `Display` form is one line; [`Self::render`] shows the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QueryInvalid {
    /// What is wrong, in one line.
    pub message: String,
    /// The place in the text.
    pub span: Span,
    /// What to do about it, if that is known.
    pub hint: Option<String>,
}

impl QueryInvalid {
    /// An error at these bytes of the text.
    pub(super) fn new(text: &str, place: Range<usize>, message: impl Into<String>) -> Self {
        let start = text.floor_char_boundary(place.start);
        let end = text.ceil_char_boundary(place.end).max(start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        let marked = text[start..end].lines().next().unwrap_or_default();
        Self {
            message: message.into(),
            span: Span::new(line, column, marked.chars().count()),
            hint: None,
        }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The error in a readable form: message, the line of `text`, a caret below the place, the
    /// hint.
    #[must_use]
    pub fn render(&self, text: &str) -> String {
        let line = usize::try_from(self.span.line - 1).unwrap_or(usize::MAX);
        let line = text.lines().nth(line).unwrap_or_default();
        let excerpt = Excerpt::new(line, self.span);
        let mut shown = format!("{self}\n  {}\n  {}\n", excerpt.line, excerpt.marks);
        if let Some(hint) = &self.hint {
            shown.push_str("  hint: ");
            shown.push_str(hint);
            shown.push('\n');
        }
        shown
    }
}
