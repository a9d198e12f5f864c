//! Every call of `flo` that a document shows is one that the command line takes, and every file of `deploy` that
//! one names is there.

use super::words;
use crate::arguments::Arguments;
use clap::Parser;
use std::fs;
use std::path::{Path, PathBuf};

/// Fences of blocks that a reader types in.
const SHELLS: [&str; 3] = ["```sh", "```console", "```console,background"];

/// What runs a call in a container, up to the call.
const CONTAINERS: [&str; 2] = ["kubectl ", "docker compose "];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents with their texts.
fn documents() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut documents = vec![root.join("README.md"), root.join("deploy/README.md")];
    push_pages(&root.join("docs"), &mut documents);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a document can be read");
        (path, text)
    };
    documents.into_iter().map(read).collect()
}

#[test]
fn every_call_in_the_documents_parses() {
    let mut calls_count = 0;
    let mut findings = String::new();
    for (document, text) in documents() {
        for (line, call) in calls(&text) {
            calls_count += 1;
            if let Err(error) = Arguments::try_parse_from(&call) {
                findings.push_str(&format!("{}:{line}: {error}\n", document.display()));
            }
        }
    }
    assert!(findings.is_empty(), "{findings}");
    assert!(
        calls_count > 100,
        "the walk reaches the calls: {calls_count}"
    );
}

#[test]
fn every_file_of_deploy_that_a_document_names_is_there() {
    let mut names_count = 0;
    let mut findings = String::new();
    for (document, text) in documents() {
        for name in names(&text) {
            names_count += 1;
            if !root().join(name).exists() {
                findings.push_str(&format!("{}: there is no {name}\n", document.display()));
            }
        }
    }
    assert!(findings.is_empty(), "{findings}");
    assert!(
        names_count > 20,
        "the walk reaches the names: {names_count}"
    );
}

/// The paths below `deploy` in a document, wherever they stand.
fn names(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    let words = text.split(|c: char| !is_part(c));
    words
        .filter(|word| word.starts_with("deploy/"))
        .map(|word| word.trim_end_matches('.'))
        .collect()
}

fn push_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the documents can be read") {
        let path = entry.expect("the documents can be read").path();
        if path.is_dir() {
            push_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The calls of `flo` in a document's shell blocks, in words, each with the number of its line.
fn calls(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut calls = Vec::new();
    let mut is_shell = false;
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.starts_with("```") {
            is_shell = SHELLS.contains(&line.trim_end());
            continue;
        }
        if !is_shell {
            continue;
        }
        let mut call = line.trim_start_matches("$ ").to_owned();
        while call.ends_with('\\') {
            call.pop();
            let (_, next) = lines.next().expect("a line is continued by another");
            call.push_str(next.trim_start_matches("> ").trim_start());
        }
        if CONTAINERS.iter().any(|program| call.starts_with(program))
            && let Some(position) = call.find(" flo ")
        {
            call.drain(..=position);
        }
        if call.starts_with("flo ") {
            calls.push((number + 1, words(&call)));
        }
    }
    calls
}

#[test]
fn calls_are_found_and_cut_into_words() {
    let text = "```sh\nflo a 'b c' \\\n    --d # e\nkubectl exec a -- flo g\n```\n```text\nflo no\n```\n```console\n$ flo f | cat\nflo\n```\n";
    let expected = [
        vec!["flo", "a", "b c", "--d"],
        vec!["flo", "g"],
        vec!["flo", "f"],
    ];
    let found: Vec<Vec<String>> = calls(text).into_iter().map(|(_, call)| call).collect();
    assert_eq!(found, expected);
}

#[test]
fn names_are_cut_out_of_sentences_and_calls() {
    let text = "See `deploy/a.toml`. [b](../deploy/b) and -f deploy/c-d/e.yaml, or deploy.";
    assert_eq!(names(text), ["deploy/a.toml", "deploy/c-d/e.yaml"]);
}
