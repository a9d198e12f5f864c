//! Whitespace that is invisible, but shows in every diff.

use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

#[test]
fn no_line_ends_in_whitespace_or_holds_a_tab() {
    expect_none(
        &sources(&[".rs", ".md", ".toml", ".proto"]),
        stray_whitespace,
    );
}

fn stray_whitespace(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        if line.contains('\t') {
            findings.push(source.finding(number, "expected spaces, but there is a tab"));
        } else if line != line.trim_end() {
            findings.push(source.finding(number, "the line ends in whitespace"));
        }
    }
    findings
}

#[test]
fn planted_whitespace_is_found() {
    let planted = Source::planted("a.md", "clean\nends \n\tindented\nclean\n");
    expect_lines(stray_whitespace, &planted, &[2, 3]);
}
