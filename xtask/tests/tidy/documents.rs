//! Rules for the other documents: those for every reader stay short, and the commands that they show exist.

use std::process::Command;

use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

/// Documents to read before any change are short enough to be read completely.
const READ_FIRST: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// The maximum number of lines of each.
const LINES_MAX: usize = 400;

/// Languages of fenced blocks with commands.
const SHELLS: [&str; 3] = ["```sh", "```bash", "```console"];

#[test]
fn what_everybody_reads_first_has_at_most_400_lines() {
    expect_none(&sources(&[".md"]), too_long);
}

#[test]
fn documents_show_only_commands_of_xtask_that_exist() {
    expect_none(&sources(&[".md"]), |source| {
        unknown_commands(source, is_command)
    });
}

fn too_long(source: &Source) -> Vec<Finding> {
    let length = source.text.lines().count();
    if !READ_FIRST.contains(&source.path.as_str()) || length <= LINES_MAX {
        return Vec::new();
    }
    let message = format!("expected at most {LINES_MAX} lines, but there are {length}");
    vec![source.finding(LINES_MAX + 1, message)]
}

fn unknown_commands(source: &Source, is_command: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in shell_lines(source) {
        for (start, call) in line.match_indices("cargo xtask ") {
            let name = line[start + call.len()..].split_whitespace().next();
            let Some(name) = name.filter(|name| !is_command(name)) else {
                continue;
            };
            let message = format!("expected a command of xtask, but got `{name}`");
            findings.push(source.finding(number, message));
        }
    }
    findings
}

/// The lines inside fenced shell blocks.
fn shell_lines(source: &Source) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut lines = Vec::new();
    for (number, line) in source.lines() {
        if line.starts_with("```") {
            inside = SHELLS.contains(&line.trim_end());
        } else if inside {
            lines.push((number, line));
        }
    }
    lines
}

/// Whether xtask knows the command: asked for its help, it does nothing else.
fn is_command(name: &str) -> bool {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args([name, "--help"])
        .output();
    output.expect("cargo has built xtask").status.success()
}

#[test]
fn planted_long_documents_are_found() {
    let text = "line\n".repeat(LINES_MAX + 1);
    for path in READ_FIRST {
        expect_lines(too_long, &Source::planted(path, &text), &[LINES_MAX + 1]);
    }
    expect_lines(too_long, &Source::planted("docs/rules.md", &text), &[]);
}

#[test]
fn a_planted_unknown_command_is_found() {
    let text =
        "cargo xtask not-a-call\n```sh\ncargo xtask verify\ncargo xtask launch --fast\n```\n";
    let planted = Source::planted("README.md", text);
    expect_lines(
        |source| unknown_commands(source, is_command),
        &planted,
        &[4],
    );
}
