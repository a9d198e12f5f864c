//! `growth.md`: a section for each series, each with where it comes from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::section::{Section, wrap};
use super::series::Series;
use crate::child;
use crate::machine::Machine;

/// The page in its folder.
const NAME: &str = "growth.md";

/// What a page begins with.
const HEAD: &str = "\
# How costs grow

What three nodes cost as clients, payloads and state grow, measured by `flo bench`. `cargo xtask bench-growth`
writes this page, one section at a time: compare figures within a section, never between two.

Nodes and load share one machine. Nothing is encrypted, and every acknowledged command was synced to disk by a
majority. Latencies are in milliseconds, CPU use in percent of one core. Each measurement runs on a separate
cluster, unless its section says otherwise.
";

/// What a section begins with.
const HEADING: &str = "\n## ";

/// Where a section's figures come from.
#[derive(Debug)]
pub(super) struct Origin {
    date: String,
    machine: Vec<String>,
    command: String,
}

/// Where the page and its figures lie.
pub(super) struct Shelf {
    folder: PathBuf,
}

/// The page: what stands below the heading of each series that was measured.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    sections: Vec<(Series, String)>,
}

impl Origin {
    /// What is measured today.
    ///
    /// # Errors
    /// If the system does not tell the date.
    pub(super) fn now(machine: &Machine, command: String) -> Result<Self> {
        Ok(Self {
            date: child::first_line(Command::new("date").args(["-u", "+%Y-%m-%d"]))?,
            machine: machine.lines(),
            command,
        })
    }

    fn text(&self) -> String {
        let Self {
            date,
            machine,
            command,
        } = self;
        let machine = machine.join("; ");
        let measured = wrap(&format!("Measured on {date}, on {machine}:"));
        format!("{measured}\n\n```sh\n{command}\n```\n")
    }
}

impl Shelf {
    /// Takes a folder, before anything is measured that could not be kept.
    ///
    /// # Errors
    /// If it cannot be made, or what lies there is another page.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("expected a folder {}", folder.display()))?;
        let folder = folder.to_owned();
        let shelf = Self { folder };
        shelf.read()?;
        Ok(shelf)
    }

    /// Puts a section in its place, and its figures beside the page; says where the page is.
    ///
    /// # Errors
    /// If something cannot be written. Then the page is as it was.
    pub(super) fn put(
        &self,
        series: Series,
        section: &Section,
        origin: &Origin,
    ) -> Result<PathBuf> {
        let mut page = self.read()?;
        page.put(series, format!("{}\n{}", origin.text(), section.text()));
        for figure in section.figures() {
            let name = figure.file_name().context("expected a figure in a file")?;
            self.write(&name.to_string_lossy(), &fs::read(figure)?)?;
        }
        self.write(NAME, page.text().as_bytes())?;
        Ok(self.path())
    }

    fn read(&self) -> Result<Page> {
        let path = self.path();
        if !path.exists() {
            return Ok(Page::default());
        }
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("expected to read {}", path.display()))?;
        Page::read(&text).with_context(|| {
            let path = path.display();
            format!("expected a page of bench-growth in {path}; remove it, or name another --out")
        })
    }

    /// By one rename, so that no reader ever sees half of it.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let unfinished = self.folder.join(format!(".{name}.unfinished"));
        let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, &path));
        written.with_context(|| format!("expected to write {}", path.display()))
    }

    fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }
}

impl Page {
    fn read(text: &str) -> Result<Self> {
        let mut parts = text.split(HEADING);
        let title = HEAD.lines().next().unwrap_or_default();
        if parts.next().and_then(|head| head.lines().next()) != Some(title) {
            bail!("the first line is not `{title}`");
        }
        let mut page = Self::default();
        for part in parts {
            let (heading, body) = part.split_once("\n\n").unwrap_or((part, ""));
            let known = Series::ALL.into_iter().find(|it| it.title() == heading);
            let series = known.with_context(|| format!("no series is called `{heading}`"))?;
            page.put(series, format!("{}\n", body.trim_end()));
        }
        Ok(page)
    }

    fn put(&mut self, series: Series, body: String) {
        self.sections.retain(|(known, _)| *known != series);
        self.sections.push((series, body));
    }

    /// In the order of the series, whenever each was measured.
    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for series in Series::ALL {
            let mut sections = self.sections.iter();
            if let Some((_, body)) = sections.find(|(known, _)| *known == series) {
                text.push_str(&format!("{HEADING}{}\n\n{body}", series.title()));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::table::Table;

    fn origin(date: &str) -> Origin {
        Origin {
            date: date.to_owned(),
            machine: vec![
                "2 cores (Sail 9000), 7960 MiB".to_owned(),
                "flo 1".to_owned(),
            ],
            command: "cargo xtask bench-growth --only idle".to_owned(),
        }
    }

    fn section(percent: &str) -> Section {
        let mut table = Table::new(&["node", "CPU"]);
        table.add(["leader", percent]);
        Section::default().paragraph("Ten seconds.").table(&table)
    }

    #[test]
    fn a_page_holds_each_series_once_and_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let drawn = folder.path().join("drawn.svg");
        fs::write(&drawn, "<svg/>").unwrap();
        let out = folder.path().join("out");
        let shelf = Shelf::open(&out).unwrap();
        for percent in ["1.0", "2.0"] {
            shelf
                .put(Series::Idle, &section(percent), &origin("2026-01-02"))
                .unwrap();
        }
        let clients = Section::default().figure("By clients", drawn);
        let path = shelf
            .put(Series::Clients, &clients, &origin("2026-01-03"))
            .unwrap();
        let page = fs::read_to_string(&path).unwrap();
        let sections = page.strip_prefix(HEAD).unwrap();
        expect![[r#"

            ## More clients

            Measured on 2026-01-03, on 2 cores (Sail 9000), 7960 MiB; flo 1:

            ```sh
            cargo xtask bench-growth --only idle
            ```

            ![By clients](drawn.svg)

            ## Idle

            Measured on 2026-01-02, on 2 cores (Sail 9000), 7960 MiB; flo 1:

            ```sh
            cargo xtask bench-growth --only idle
            ```

            Ten seconds.

            | node   | CPU |
            |--------|----:|
            | leader | 2.0 |
        "#]]
        .assert_eq(sections);
        let mut names: Vec<_> = fs::read_dir(&out)
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["drawn.svg", NAME]);
    }

    #[test]
    fn another_page_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["# A diary\n", "", &format!("{HEAD}\n## Storms\n\nNone.\n")] {
            fs::write(folder.path().join(NAME), text).unwrap();
            assert!(Shelf::open(folder.path()).is_err(), "{text}");
        }
    }
}
