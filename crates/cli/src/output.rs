//! Output to stdout in the selected format.

use crate::code::Code;
use crate::failure::Failure;
use clap::ValueEnum;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;
use std::io::{self, Write};

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people: sentences and tables.
    #[default]
    Text,
    /// For programs: one object on one line.
    Json,
    /// The same fields as JSON.
    Yaml,
}

/// Prints in one format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    format: Format,
}

/// One row of a list.
pub(crate) trait Row: Serialize {
    /// The column headings.
    const HEADINGS: &'static [&'static str];

    /// One cell for each heading.
    fn cells(&self) -> Vec<String>;
}

/// One page of a list, in the published form of all lists.
#[derive(Debug, Serialize)]
pub(crate) struct Page<R> {
    /// The rows of this page.
    pub(crate) items: Vec<R>,
    /// The token of the next page; `None` on the last one.
    pub(crate) next_page_token: Option<String>,
}

impl<R> Page<R> {
    /// Builds a page from a response, in which an empty token marks the last page.
    pub(crate) fn new<M: Into<R>>(messages: Vec<M>, next_page_token: String) -> Self {
        Self {
            items: messages.into_iter().map(Into::into).collect(),
            next_page_token: Some(next_page_token).filter(|token| !token.is_empty()),
        }
    }
}

impl Output {
    /// An output in this format.
    pub(crate) fn new(format: Format) -> Self {
        Self { format }
    }

    /// The selected format.
    pub(crate) fn format(self) -> Format {
        self.format
    }

    /// Prints a value: in text format with `text`, otherwise as its fields.
    pub(crate) fn value<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Text => write(&end_line(text(value))),
            Format::Json => write(&json_line(value)?),
            Format::Yaml => write(&yaml(value)?),
        }
    }

    /// Prints a value whose text format is indented JSON.
    pub(crate) fn document<T: Serialize>(self, value: &T) -> Result<(), Failure> {
        match self.format {
            Format::Text => write(&end_line(serde_json::to_string_pretty(value).map_err(odd)?)),
            Format::Json | Format::Yaml => self.value(value, |_| String::new()),
        }
    }

    /// Prints the JSON output of a run or an action, unchanged except in YAML format.
    pub(crate) fn json_text(self, text: &[u8]) -> Result<(), Failure> {
        let text = String::from_utf8_lossy(text);
        match self.format {
            Format::Text | Format::Json => write(&end_line(text.into_owned())),
            Format::Yaml => {
                let value: serde_json::Value = serde_json::from_str(&text).map_err(odd)?;
                write(&yaml(&value)?)
            }
        }
    }

    /// Prints a page of a list: in text format a table, with the next page's token on stderr.
    pub(crate) fn page<R: Row>(self, page: &Page<R>) -> Result<(), Failure> {
        self.value(page, |page| table(&page.items))?;
        if let Some(token) = &page.next_page_token {
            self.note(&format!("more rows: --page-token {token}"));
        }
        Ok(())
    }

    /// Prints a remark for people on stderr. Programs use the other formats, find the information
    /// in the fields of the result, and get only errors on stderr.
    pub(crate) fn note(self, text: &str) {
        if self.format == Format::Text {
            // A closed stderr is ignored.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Prints one item of an open-ended sequence: JSON on one line, YAML as a document.
    pub(crate) fn item<T: Serialize>(
        self,
        item: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if self.format == Format::Yaml {
            write("---\n")?;
        }
        self.value(item, text)
    }
}

/// A table of rows with headings and without borders.
pub(crate) fn table<R: Row>(rows: &[R]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(R::HEADINGS.iter().copied());
    table.add_rows(rows.iter().map(Row::cells));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// Writes text to stdout and flushes it, for a reader that waits for it.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

fn json_line<T: Serialize>(value: &T) -> Result<String, Failure> {
    Ok(end_line(serde_json::to_string(value).map_err(odd)?))
}

fn yaml<T: Serialize>(value: &T) -> Result<String, Failure> {
    serde_yaml::to_string(value).map_err(odd)
}

/// A value that the format cannot represent, which none of ours is.
fn odd(error: impl std::fmt::Display) -> Failure {
    Failure::new(
        Code::OutputUnwritable,
        format!("expected a printable value, but {error}"),
    )
}

fn end_line(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[derive(Serialize)]
    struct Ship {
        name: String,
        masts: u32,
    }

    impl Row for Ship {
        const HEADINGS: &'static [&'static str] = &["NAME", "MASTS"];

        fn cells(&self) -> Vec<String> {
            vec![self.name.clone(), self.masts.to_string()]
        }
    }

    impl From<(&str, u32)> for Ship {
        fn from((name, masts): (&str, u32)) -> Self {
            let name = name.to_owned();
            Self { name, masts }
        }
    }

    #[test]
    fn a_table_has_aligned_columns_and_no_trailing_blanks() {
        let rows = [Ship::from(("pinnace", 2)), Ship::from(("cog", 1))];
        expect![[r#"
            NAME     MASTS
            pinnace  2
            cog      1"#]]
        .assert_eq(&table(&rows));
    }

    #[test]
    fn the_last_page_has_a_null_token() {
        let page: Page<Ship> = Page::new(vec![("cog", 1)], String::new());
        expect![[r#"
            {"items":[{"name":"cog","masts":1}],"next_page_token":null}
        "#]]
        .assert_eq(&json_line(&page).expect("printable"));
        let page: Page<Ship> = Page::new(vec![("cog", 1)], "abc".to_owned());
        assert_eq!(page.next_page_token.as_deref(), Some("abc"));
    }

    #[test]
    fn text_ends_with_one_line_break_and_nothing_stays_nothing() {
        assert_eq!(end_line("a".to_owned()), "a\n");
        assert_eq!(end_line("a\n".to_owned()), "a\n");
        assert_eq!(end_line(String::new()), "");
    }
}
