//! Rules for the decision records in docs/adr: numbered without gaps, complete, one screen long.

use crate::tree::{Finding, Source, expect_lines, expect_no_findings, expect_none, sources};

const FOLDER: &str = "docs/adr/";

/// One screen.
const LINES_MAX: usize = 40;

const HEADINGS: [&str; 3] = ["## Context", "## Decision", "## Consequence"];

#[test]
fn decision_records_are_numbered_without_gaps() {
    expect_no_findings(gaps(&records()));
}

#[test]
fn decision_records_tell_context_decision_and_consequence() {
    expect_none(&records(), missing_headings);
}

#[test]
fn decision_records_fit_on_one_screen() {
    expect_none(&records(), too_long);
}

fn records() -> Vec<Source> {
    let documents = sources(&[".md"]).into_iter();
    documents
        .filter(|source| source.path.starts_with(FOLDER))
        .collect()
}

/// Expects the records in order of path.
fn gaps(records: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let expected = format!("{FOLDER}{:04}-", index + 1);
        if !record.path.starts_with(&expected) {
            findings
                .push(record.finding(1, format!("expected a name that starts with `{expected}`")));
        }
    }
    findings
}

fn missing_headings(record: &Source) -> Vec<Finding> {
    HEADINGS
        .iter()
        .filter(|heading| !record.lines().any(|(_, line)| line == **heading))
        .map(|heading| {
            record.finding(
                1,
                format!("expected a heading `{heading}`, but it is missing"),
            )
        })
        .collect()
}

fn too_long(record: &Source) -> Vec<Finding> {
    let length = record.text.lines().count();
    if length <= LINES_MAX {
        return Vec::new();
    }
    let message = format!("expected at most {LINES_MAX} lines, but there are {length}");
    vec![record.finding(LINES_MAX + 1, message)]
}

#[test]
fn planted_gaps_and_doubles_are_found() {
    let record = |name: &str| Source::planted(&format!("{FOLDER}{name}"), "");
    assert_eq!(gaps(&[record("0001-a.md"), record("0002-b.md")]), []);
    for second in ["0003-b.md", "0001-b.md", "README.md"] {
        let found = gaps(&[record("0001-a.md"), record(second)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].path.ends_with(second), "{found:?}");
    }
}

#[test]
fn a_planted_missing_heading_is_found() {
    let planted = Source::planted("docs/adr/0001-a.md", "## Context\n## Decision\n");
    expect_lines(missing_headings, &planted, &[1]);
}

#[test]
fn a_planted_long_record_is_found() {
    let planted = Source::planted("docs/adr/0001-a.md", &"line\n".repeat(LINES_MAX + 1));
    expect_lines(too_long, &planted, &[LINES_MAX + 1]);
}
