//! Converts byte offsets of a text to lines and columns.

use crate::Span;

/// Converts offsets in ascending order, in one pass over the text.
pub(crate) struct Locator<'text> {
    text: &'text str,
    /// How far the text is counted; `line` and `column` are the position there.
    offset: usize,
    line: usize,
    column: usize,
    /// The span of every offset, if the text does not appear literally in the document.
    fixed: Option<Span>,
}

impl<'text> Locator<'text> {
    /// Positions in a whole document.
    pub(super) fn new(text: &'text str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
            column: 1,
            fixed: None,
        }
    }

    /// Positions in a text that a scalar at `span` holds.
    ///
    /// They are exact if the scalar is on one line and its characters are literal, quotes aside;
    /// for a folded or escaped scalar, every position is the scalar's.
    pub(super) fn within(text: &'text str, span: Span) -> Self {
        let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let (quotes, fixed) = match span.length.checked_sub(length) {
            Some(0) => (0, None),
            Some(2) => (1, None),
            _ => (0, Some(span)),
        };
        let number = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
        Self {
            text,
            offset: 0,
            line: number(span.line),
            column: number(span.column) + quotes,
            fixed,
        }
    }

    /// The span of the `length` bytes at `offset`, which must not be before the previous one.
    pub(super) fn span(&mut self, offset: usize, length: usize) -> Span {
        if let Some(span) = self.fixed {
            return span;
        }
        let offset = offset.min(self.text.len());
        let mut before = self
            .text
            .get(self.offset..offset)
            .unwrap_or_default()
            .chars()
            .peekable();
        while let Some(character) = before.next() {
            let is_break = character == '\n' || (character == '\r' && before.peek() != Some(&'\n'));
            if is_break {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.offset = self.offset.max(offset);
        let own = self
            .text
            .get(offset..offset.saturating_add(length))
            .unwrap_or_default();
        let own_line = own.split(['\n', '\r']).next().unwrap_or_default();
        Span::new(self.line, self.column, own_line.chars().count())
    }
}
