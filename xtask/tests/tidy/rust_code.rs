//! Rules for Rust files: length, nothing unfinished, honest tests, meaningful names.
//!
//! Clippy checks the length of functions (`too-many-lines-threshold` in clippy.toml).

use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

/// The maximum number of lines of a file, without inline tests (CONTRIBUTING.md, "Style").
const LINES_MAX: usize = 600;

/// Words that mark unfinished or disabled code. In two parts each, since this file obeys
/// its own rule.
const UNFINISHED: [&str; 5] = [
    concat!("#[ig", "nore"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
];

/// A call that sleeps for whole seconds, with any path.
const SLEEP: [&str; 2] = [concat!("sl", "eep("), "Duration::from_secs"];

/// Names that say nothing about their content, and so attract everything.
const NAMES_BANNED: [&str; 6] = ["common", "helpers", "misc", "types", "util", "utils"];

#[test]
fn no_rust_file_is_longer_than_600_lines_without_its_tests() {
    expect_none(&sources(&[".rs"]), too_long);
}

#[test]
fn nothing_is_left_unfinished_and_no_test_is_switched_off() {
    expect_none(&sources(&[".rs"]), unfinished);
}

#[test]
fn no_test_sleeps_for_whole_seconds() {
    expect_none(&sources(&[".rs"]), long_sleeps);
}

#[test]
fn every_crate_and_module_has_a_telling_name() {
    expect_none(&sources(&[".rs"]), empty_names);
}

fn too_long(source: &Source) -> Vec<Finding> {
    let generated = source.text.lines().next();
    if generated.is_some_and(|line| line.contains("@generated")) {
        return Vec::new();
    }
    let all = source.text.lines().count();
    let length = inline_tests_start(source).map_or(all, |number| number - 1);
    if length <= LINES_MAX {
        return Vec::new();
    }
    let message =
        format!("expected at most {LINES_MAX} lines before the tests, but there are {length}");
    vec![source.finding(LINES_MAX + 1, message)]
}

/// The line of the attribute before the inline tests. An attribute that only declares a module in
/// another file, at the head of this one, does not count.
pub(crate) fn inline_tests_start(source: &Source) -> Option<usize> {
    let lines: Vec<&str> = source.text.lines().collect();
    let opens = |index: usize| {
        let mut rest = lines[index + 1..].iter();
        rest.find(|line| !line.starts_with("#["))
            .is_some_and(|item| item.trim_end().ends_with('{'))
    };
    let mut numbers = 0..lines.len();
    let index = numbers.find(|&index| lines[index].starts_with("#[cfg(test)]") && opens(index))?;
    Some(index + 1)
}

fn unfinished(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        for word in UNFINISHED.iter().filter(|word| holds_word(line, word)) {
            findings.push(source.finding(
                number,
                format!("expected finished code, but found `{word}`"),
            ));
        }
    }
    findings
}

/// Whether the line contains the text as a whole word, not as a part of a longer one.
fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        let ends_open = !word.ends_with(is_part);
        !before.is_some_and(is_part) && (ends_open || !after.is_some_and(is_part))
    })
}

fn long_sleeps(source: &Source) -> Vec<Finding> {
    let is_test_file = source
        .path
        .split('/')
        .any(|part| part == "tests" || part == "tests.rs");
    let tests_start = if is_test_file {
        Some(1)
    } else {
        inline_tests_start(source)
    };
    let Some(tests_start) = tests_start else {
        return Vec::new();
    };
    let sleeps = |line: &str| SLEEP.iter().all(|part| line.contains(part));
    source
        .lines()
        .filter(|(number, line)| *number >= tests_start && sleeps(line))
        .map(|(number, _)| {
            source.finding(number, "await the event instead of sleeping for seconds")
        })
        .collect()
}

fn empty_names(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let parts = source.path.trim_end_matches(".rs").split('/');
    for part in parts.filter(|part| NAMES_BANNED.contains(part)) {
        findings.push(source.finding(1, format!("`{part}` says nothing about what is inside")));
    }
    for (number, line) in source.lines() {
        if let Some(name) = declared_module(line).filter(|name| NAMES_BANNED.contains(name)) {
            findings.push(source.finding(
                number,
                format!("`{name}` says nothing about what is inside"),
            ));
        }
    }
    findings
}

/// The name in `mod name;`, `pub mod name {` and the like.
fn declared_module(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c| c != ' ').trim_start(),
        None => line,
    };
    let name = line.strip_prefix("mod ")?;
    Some(name.trim_end_matches([';', '{', ' ']))
}

#[test]
fn a_planted_long_file_is_found_but_not_its_tests() {
    let code = "//\n".repeat(LINES_MAX);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{code}}}\n");
    let fits = Source::planted("a.rs", &format!("{code}{tests}"));
    expect_lines(too_long, &fits, &[]);
    let too_much = Source::planted("a.rs", &format!("{code}//\n{tests}"));
    expect_lines(too_long, &too_much, &[LINES_MAX + 1]);
    let generated = Source::planted("a.rs", &format!("// @generated\n{code}{code}"));
    expect_lines(too_long, &generated, &[]);
}

#[test]
fn tests_declared_at_the_head_of_a_file_hide_nothing() {
    let code = "//\n".repeat(LINES_MAX + 1);
    let planted = Source::planted("a.rs", &format!("#[cfg(test)]\nmod tests;\n{code}"));
    expect_lines(too_long, &planted, &[LINES_MAX + 1]);
}

#[test]
fn each_planted_unfinished_word_is_found() {
    for word in UNFINISHED {
        let planted = Source::planted("a.rs", &format!("fn a() {{}}\n{word} later\n"));
        expect_lines(unfinished, &planted, &[2]);
    }
    let longer_word = Source::planted("a.rs", concat!("MY_TO", "DO\n", "TO", "DOS\n"));
    expect_lines(unfinished, &longer_word, &[]);
}

#[test]
fn a_planted_sleep_is_found_in_tests_only() {
    let sleep = concat!("sl", "eep(Duration::", "from_secs(3)).await;\n");
    expect_lines(
        long_sleeps,
        &Source::planted("tests/tests/a.rs", sleep),
        &[1],
    );
    expect_lines(
        long_sleeps,
        &Source::planted("crates/a/src/lib.rs", sleep),
        &[],
    );
    let inline = format!("{sleep}#[cfg(test)]\nmod tests {{\n{sleep}}}\n");
    expect_lines(
        long_sleeps,
        &Source::planted("crates/a/src/lib.rs", &inline),
        &[4],
    );
}

#[test]
fn planted_empty_names_are_found() {
    expect_lines(
        empty_names,
        &Source::planted("crates/a/src/utils.rs", ""),
        &[1],
    );
    expect_lines(
        empty_names,
        &Source::planted("crates/common/src/lib.rs", ""),
        &[1],
    );
    let text = "mod runs;\npub(crate) mod helpers;\nmod types {\n";
    expect_lines(
        empty_names,
        &Source::planted("crates/a/src/lib.rs", text),
        &[2, 3],
    );
}
