//! Builds a section of the page.

use std::path::PathBuf;

use crate::table::Table;

/// The maximum length of a line of a paragraph, in characters; a longer word gets a longer line.
const LINE_MAX: usize = 118;

/// The result of one series: Markdown below its heading, and figures beside the page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// Paragraphs and tables.
    blocks: Vec<String>,
    /// The drawn files of the figures, by their final names.
    figures: Vec<PathBuf>,
}

impl Section {
    /// Adds a paragraph.
    pub(super) fn paragraph(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(wrap(&text.into()));
        self
    }

    /// Adds a table.
    pub(super) fn table(mut self, table: &Table) -> Self {
        self.blocks.push(table.markdown().join("\n"));
        self
    }

    /// Adds a figure that was drawn.
    pub(super) fn figure(mut self, says: &str, drawn: PathBuf) -> Self {
        let name = drawn.file_name().unwrap_or_default().to_string_lossy();
        self.blocks.push(format!("![{says}]({name})"));
        self.figures.push(drawn);
        self
    }

    /// Its Markdown.
    pub(super) fn text(&self) -> String {
        self.blocks.join("\n\n") + "\n"
    }

    /// The drawn files of its figures.
    pub(super) fn figures(&self) -> &[PathBuf] {
        &self.figures
    }
}

/// The same words, wrapped into lines.
pub(super) fn wrap(text: &str) -> String {
    let mut wrapped = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > LINE_MAX {
            wrapped.push('\n');
            length = 0;
        } else if length > 0 {
            wrapped.push(' ');
            length += 1;
        }
        wrapped.push_str(word);
        length += word_length;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_before_they_are_too_long() {
        let text = "0123456789 ".repeat(12);
        let wrapped = wrap(&text);
        let lengths: Vec<usize> = wrapped.lines().map(str::len).collect();
        assert_eq!(lengths, [109, 21]);
        assert_eq!(wrap("one\n two"), "one two");
    }
}
