//! The files of the project, and the findings of rules.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::project::root;

/// Folders without files of the project.
const FOLDERS_SKIPPED: [&str; 3] = [".git", ".flo", "target"];

/// One text file of the project.
pub(crate) struct Source {
    /// Relative to the root, with `/` between folders.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// A file that exists in a test only.
    pub(crate) fn planted(path: &str, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// The lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// The number of the first line that starts with the key of a table, or 1.
    pub(crate) fn line_of_key(&self, key: &str) -> usize {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let starts = |line: &str| {
            let rest = line.strip_prefix(key);
            rest.is_some_and(|rest| !rest.starts_with(is_part))
        };
        self.lines()
            .find(|(_, line)| starts(line))
            .map_or(1, |(number, _)| number)
    }

    pub(crate) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: self.path.clone(),
            line,
            message: message.into(),
        }
    }
}

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Every file of the project with one of the suffixes, in order of path.
pub(crate) fn sources(endings: &[&str]) -> Vec<Source> {
    let mut sources: Vec<Source> = files(root())
        .into_iter()
        .filter(|path| endings.iter().any(|ending| path.ends_with(ending)))
        .map(|path| Source {
            text: fs::read_to_string(root().join(&path)).expect("a text file of the project"),
            path,
        })
        .collect();
    sources.sort_by(|left, right| left.path.cmp(&right.path));
    assert!(!sources.is_empty(), "the tree has no file of {endings:?}");
    sources
}

/// Every file of the project, in no particular order.
pub(crate) fn paths() -> Vec<String> {
    files(root())
}

/// Applies the rule to each file and fails with all findings.
pub(crate) fn expect_none(sources: &[Source], rule: impl Fn(&Source) -> Vec<Finding>) {
    expect_no_findings(sources.iter().flat_map(rule).collect());
}

/// Fails with the findings, if there are any, one per line as `path:line: message`.
pub(crate) fn expect_no_findings(findings: Vec<Finding>) {
    let mut report = String::new();
    for finding in &findings {
        let Finding {
            path,
            line,
            message,
        } = finding;
        writeln!(report, "{path}:{line}: {message}").expect("a string takes any text");
    }
    assert!(findings.is_empty(), "{} found:\n{report}", findings.len());
}

/// Applies the rule to a planted file and expects findings on exactly these lines.
pub(crate) fn expect_lines(
    rule: impl Fn(&Source) -> Vec<Finding>,
    planted: &Source,
    expected: &[usize],
) {
    let found = rule(planted);
    let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, expected, "{found:?}");
}

fn files(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project") {
            let entry = entry.expect("an entry of a folder of the project");
            let kind = entry.file_type().expect("an entry has a type");
            let name = entry.file_name();
            if kind.is_dir() && !FOLDERS_SKIPPED.iter().any(|skipped| name == *skipped) {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(relative(root, &entry.path()));
            }
        }
    }
    found
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).expect("the path is below the root");
    path.to_str()
        .expect("names in the project are UTF-8")
        .into()
}
