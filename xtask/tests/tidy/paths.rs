//! Files that comments and documents name exist in the repository.

use std::collections::BTreeSet;

use crate::prose;
use crate::tree::{Finding, Source, expect_lines, expect_none, paths, sources};

/// Suffixes of names that count as files of the project.
const ENDINGS: [&str; 4] = [".rs", ".md", ".proto", ".toml"];

/// The folders at the root: a path that starts with one is a path of the project.
const FOLDERS: [&str; 10] = [
    "benches", "crates", "deploy", "docs", "examples", "fuzz", "jepsen", "proto", "sim", "xtask",
];

/// Folders beside the project that exist on some machines.
const FOLDERS_OUTSIDE: [&str; 3] = ["seeds", "shared", "spec"];

/// Characters of placeholders, which are not files: `NAME.txt`, `<noun>/<verb>.rs`, `*.md`.
const PLACEHOLDERS: [&str; 5] = ["NAME", "<", "*", "…", "{"];

/// Folders that commands create.
const FOLDERS_MADE: [&str; 2] = ["docs/book", "fuzz/artifacts"];

/// Pages for users, which name the users' files.
const MANUAL: &str = "docs/manual/";

#[test]
fn every_file_that_is_named_exists() {
    let known = known(&paths());
    expect_none(&sources(&prose::ENDINGS), |source| missing(source, &known));
}

#[test]
fn nothing_outside_the_repository_is_named() {
    let known = known(&paths());
    expect_none(&sources(&prose::ENDINGS), |source| outside(source, &known));
}

#[test]
fn no_path_is_that_of_the_clone_that_was_compiled() {
    expect_none(&sources(&[".rs"]), compiled_in);
    let planted = Source {
        path: "planted.rs".to_owned(),
        text: [
            "PathBuf::from(env!(\"CARGO_MANIFEST_DIR\"))",
            "folder.unwrap_or_else(|| env!(\"CARGO_MANIFEST_DIR\").into())",
        ]
        .join("\n"),
    };
    expect_lines(compiled_in, &planted, &[1]);
}

/// Clones share a target folder (ADR 0004), and Cargo does not compile a file again for another clone. The compiled-in
/// folder may only replace the one that Cargo names at run time.
fn compiled_in(source: &Source) -> Vec<Finding> {
    let macro_call = concat!("env!(\"CARGO_", "MANIFEST_DIR\")");
    let lines = source
        .lines()
        .filter(|(_, line)| line.contains(macro_call) && !line.contains("unwrap_or_else"));
    let message =
        "read CARGO_MANIFEST_DIR at run time: the compiled-in folder may be that of another clone";
    let finding = |(number, _)| source.finding(number, message.to_owned());
    lines.map(finding).collect()
}

/// Every path of the project and every suffix of one, files and folders alike.
fn known(paths: &[String]) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for path in paths {
        let parts: Vec<&str> = path.split('/').collect();
        for begin in 0..parts.len() {
            let ends = begin + 1..=parts.len();
            known.extend(ends.map(|end| parts[begin..end].join("/")));
        }
    }
    known
}

fn missing(source: &Source, known: &BTreeSet<String>) -> Vec<Finding> {
    let is_missing = |name: &&str| is_of_project(name) && !known.contains(*name);
    if source.path.starts_with(MANUAL) {
        return Vec::new();
    }
    found(source, |name| {
        is_missing(&name).then(|| format!("expected a file `{name}`, but it does not exist"))
    })
}

fn outside(source: &Source, known: &BTreeSet<String>) -> Vec<Finding> {
    found(source, |name| {
        let (folders, _) = name.rsplit_once('/')?;
        let is_outside = folders
            .split('/')
            .any(|folder| FOLDERS_OUTSIDE.contains(&folder));
        (is_outside && !known.contains(name)).then(|| format!("`{name}` is outside the repository"))
    })
}

/// The findings for the names in a file's prose.
fn found(source: &Source, check: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for word in prose::words(source) {
        for name in names(&word.text) {
            findings.extend(check(name).map(|message| source.finding(word.line, message)));
        }
    }
    findings
}

/// The possible file names in a word: without quotes, `../`, and the text behind a colon.
fn names(word: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || "_-./<>*…{}".contains(c);
    word.split(move |c: char| !is_part(c)).map(|name| {
        let mut name = name.trim_end_matches(['.', '/']);
        while let Some(rest) = name.strip_prefix("../").or(name.strip_prefix("./")) {
            name = rest;
        }
        name
    })
}

/// Whether a name is that of a file or folder of the project.
fn is_of_project(name: &str) -> bool {
    let is_placeholder = PLACEHOLDERS.iter().any(|sign| name.contains(sign));
    let is_made = FOLDERS_MADE.iter().any(|made| name.starts_with(made));
    let is_elsewhere = name.starts_with('/') || name.contains("://");
    if is_placeholder || is_made || is_elsewhere {
        return false;
    }
    let mut stems = ENDINGS
        .iter()
        .filter_map(|ending| name.strip_suffix(ending));
    let has_ending = stems.any(|stem| !stem.is_empty());
    let is_path = name
        .split_once('/')
        .is_some_and(|(folder, _)| FOLDERS.contains(&folder));
    has_ending || is_path
}

#[test]
fn planted_missing_files_are_found() {
    let paths = ["docs/design.md", "crates/a/src/run/mod.rs"].map(str::to_owned);
    let known = known(&paths);
    // `~` stands for the comment marker, since this file obeys its own rule.
    let text = "\
~ `design.md`, `../docs/design.md`, docs/, crates/a, `run/mod.rs`, run/mod.rs::test.
~ style.md
~ `docs/none`, (a/src/mod.rs)
~ docs/NAME.md, <noun>/<verb>.rs, *.rs, crates/…/x.rs, /etc/flo.toml, a.json, fuzz/artifacts/a
let code = none.md; ~ see run.rs.
"
    .replace('~', "//");
    let planted = Source::planted("a.rs", &text);
    expect_lines(|source| missing(source, &known), &planted, &[2, 3, 3, 5]);
    let manual = Source::planted("docs/manual/a.md", "style.md\n");
    expect_lines(|source| missing(source, &known), &manual, &[]);
}

#[test]
fn planted_names_outside_the_repository_are_found() {
    let known = known(&["crates/a/spec/x.rs".to_owned()]);
    // In two parts each, since this file obeys its own rule.
    for name in [
        concat!("see", "ds/000.txt"),
        concat!("../shar", "ed/style.txt"),
        concat!("/else/sp", "ec/workflows.txt"),
    ] {
        let planted = Source::planted("a.md", &format!("see {name} here\n"));
        expect_lines(|source| outside(source, &known), &planted, &[1]);
    }
    let inside = Source::planted("a.md", "see crates/a/spec/x.rs and shared/\n");
    expect_lines(|source| outside(source, &known), &inside, &[]);
}
