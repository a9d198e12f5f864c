//! Positions in a definition's text.

/// A place in the text: a position and how far to underline from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// How many characters of the line belong to it; 1 for blocks and multi-line texts.
    pub length: u32,
}

impl Span {
    /// The first character of the text.
    pub const START: Self = Self {
        line: 1,
        column: 1,
        length: 1,
    };

    /// A place; a length of 0 is shown as 1.
    #[must_use]
    pub(crate) fn new(line: usize, column: usize, length: usize) -> Self {
        let number = |value: usize| u32::try_from(value.max(1)).unwrap_or(u32::MAX);
        Self {
            line: number(line),
            column: number(column),
            length: number(length),
        }
    }
}
