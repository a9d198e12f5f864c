//! Tables for people: columns as wide as their widest cell, two blanks between them.

/// A table being built.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

enum Row {
    Cells(Vec<String>),
    /// A remark across all columns.
    Remark(String),
}

impl Table {
    /// A table below its headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let mut table = Self::default();
        table.add(headings.iter().copied());
        table
    }

    /// Adds a row. A missing cell at its end is empty.
    pub(crate) fn add<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(Into::into).collect();
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a remark across all columns.
    pub(crate) fn remark(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Remark(text.into()));
    }

    /// The lines. A column whose cells below the heading are all numbers is aligned to the right.
    pub(crate) fn render(&self) -> Vec<String> {
        let columns = self.columns();
        let line = |row: &Row| match row {
            Row::Cells(cells) => columns.line(cells),
            Row::Remark(text) => columns.remark(text),
        };
        self.rows.iter().map(line).collect()
    }

    /// The lines in Markdown, with the same columns.
    pub(crate) fn markdown(&self) -> Vec<String> {
        let columns = self.columns();
        let mut lines = Vec::new();
        for row in &self.rows {
            match row {
                Row::Cells(cells) => lines.push(columns.markdown(cells)),
                Row::Remark(text) => lines.push(columns.markdown(std::slice::from_ref(text))),
            }
            if lines.len() == 1 {
                lines.push(columns.rule());
            }
        }
        lines
    }

    fn columns(&self) -> Columns {
        let mut columns = Columns::default();
        let rows = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Remark(_) => None,
        });
        for (index, cells) in rows.enumerate() {
            columns.fit(cells, index == 0);
        }
        columns
    }
}

#[derive(Default)]
struct Columns {
    widths: Vec<usize>,
    are_numbers: Vec<bool>,
}

impl Columns {
    fn fit(&mut self, cells: &[String], is_heading: bool) {
        let count = self.widths.len().max(cells.len());
        self.widths.resize(count, 0);
        self.are_numbers.resize(count, true);
        for (column, cell) in cells.iter().enumerate() {
            self.widths[column] = self.widths[column].max(cell.chars().count());
            self.are_numbers[column] &= is_heading || is_number(cell);
        }
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let width = self.widths[column];
            if self.are_numbers[column] {
                line.push_str(&format!("{cell:>width$}  "));
            } else {
                line.push_str(&format!("{cell:<width$}  "));
            }
        }
        line.trim_end().to_owned()
    }

    fn markdown(&self, cells: &[String]) -> String {
        let mut line = String::from("|");
        for (column, width) in self.widths.iter().enumerate() {
            let cell = cells.get(column).map_or("", String::as_str);
            if self.are_numbers[column] {
                line.push_str(&format!(" {cell:>width$} |"));
            } else {
                line.push_str(&format!(" {cell:<width$} |"));
            }
        }
        line
    }

    /// The rule below the headings in Markdown.
    fn rule(&self) -> String {
        let mut line = String::from("|");
        for (width, is_numbers) in self.widths.iter().zip(&self.are_numbers) {
            let (dashes, end) = ("-".repeat(width + 1), if *is_numbers { ':' } else { '-' });
            line.push_str(&format!("{dashes}{end}|"));
        }
        line
    }

    fn remark(&self, text: &str) -> String {
        let gaps = 2 * self.widths.len().saturating_sub(1);
        let width = self.widths.iter().sum::<usize>() + gaps;
        format!("{:-^width$}", format!(" {text} "))
    }
}

/// Whether the cell fits into a column of numbers: `-` stands for a missing one.
fn is_number(cell: &str) -> bool {
    cell.is_empty()
        || cell == "-"
        || cell.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-'))
            && cell.ends_with(|last: char| last.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_their_cells_and_numbers_end_below_each_other() {
        let mut table = Table::new(&["SHIP", "MASTS", "PORT"]);
        table.add(["pinnace", "2", "Lisbon"]);
        table.remark("later");
        table.add(["cog", "11"]);
        assert_eq!(
            table.render(),
            [
                "SHIP     MASTS  PORT",
                "pinnace      2  Lisbon",
                "------- later --------",
                "cog         11",
            ]
        );
    }

    #[test]
    fn markdown_has_the_same_columns() {
        let mut table = Table::new(&["ship", "masts"]);
        table.add(["pinnace", "2"]);
        table.add(["cog"]);
        assert_eq!(
            table.markdown(),
            [
                "| ship    | masts |",
                "|---------|------:|",
                "| pinnace |     2 |",
                "| cog     |       |",
            ]
        );
    }

    #[test]
    fn a_remark_that_is_wider_than_the_table_is_kept_whole() {
        let mut table = Table::new(&["A"]);
        table.remark("a remark");
        assert_eq!(table.render(), ["A", " a remark "]);
    }
}
