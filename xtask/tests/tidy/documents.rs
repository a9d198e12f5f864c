//! Rules for the other documents: the map stays a map, and commands shown to a reader exist.

use std::process::Command;

use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

/// A map that nobody reads to the end is none (style.md).
const ARCHITECTURE_LINES_MAX: usize = 400;

/// Languages of fenced blocks that a reader types in.
const SHELLS: [&str; 3] = ["```sh", "```bash", "```console"];

#[test]
fn the_architecture_is_told_in_400_lines() {
    expect_none(&sources(&[".md"]), architecture_too_long);
}

#[test]
fn documents_show_only_commands_of_xtask_that_exist() {
    expect_none(&sources(&[".md"]), |source| {
        unknown_commands(source, is_command)
    });
}

fn architecture_too_long(source: &Source) -> Vec<Finding> {
    let length = source.text.lines().count();
    if source.path != "ARCHITECTURE.md" || length <= ARCHITECTURE_LINES_MAX {
        return Vec::new();
    }
    let message =
        format!("expected at most {ARCHITECTURE_LINES_MAX} lines, but there are {length}");
    vec![source.finding(ARCHITECTURE_LINES_MAX + 1, message)]
}

fn unknown_commands(source: &Source, is_command: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in shell_lines(source) {
        for (start, call) in line.match_indices("cargo xtask ") {
            let name = line[start + call.len()..].split_whitespace().next();
            let Some(name) = name.filter(|name| !is_command(name)) else {
                continue;
            };
            let message = format!("expected a command of xtask, but `{name}` is none");
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

/// Whether xtask itself knows the command: asked for its help, it does nothing else.
fn is_command(name: &str) -> bool {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args([name, "--help"])
        .output();
    output.expect("cargo has built xtask").status.success()
}

#[test]
fn a_planted_long_map_is_found() {
    let text = "line\n".repeat(ARCHITECTURE_LINES_MAX + 1);
    let planted = Source::planted("ARCHITECTURE.md", &text);
    expect_lines(
        architecture_too_long,
        &planted,
        &[ARCHITECTURE_LINES_MAX + 1],
    );
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
