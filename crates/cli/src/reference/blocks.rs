//! Tests of the documents: every `flo` call is a valid command line, every node that a document
//! starts has a valid configuration, and every named file of `deploy` exists.

use super::launch::Launch;
use super::root;
use super::words;
use crate::arguments::Arguments;
use clap::Parser;
use std::fs;
use std::path::{Path, PathBuf};

/// Fences of blocks that a reader types in.
const SHELLS: [&str; 3] = ["```sh", "```console", "```console,background"];

/// Programs that run a call elsewhere or as another user, up to the call.
const RUNNERS: [&str; 3] = ["kubectl ", "docker compose ", "runuser "];

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
fn every_node_in_the_documents_has_a_valid_configuration() {
    let mut launches_count = 0;
    let mut findings = String::new();
    for (document, text) in documents() {
        let nodes = calls(&text)
            .into_iter()
            .filter(|(_, call)| call.get(1).is_some_and(|verb| verb == "server"))
            .filter(|(_, call)| !has_unknown_file(call));
        let nodes = nodes.map(|(line, call)| (line, node(&call)));
        for (line, launch) in nodes.chain(configurations(&text)) {
            launches_count += 1;
            if let Err(error) = launch.config() {
                findings.push_str(&format!("{}:{line}: {error}\n", document.display()));
            }
        }
    }
    assert!(findings.is_empty(), "{findings}");
    assert!(
        launches_count > 10,
        "the walk reaches the nodes: {launches_count}"
    );
}

/// Whether a call names a configuration outside the project, so that the rest of it is unknown.
fn has_unknown_file(call: &[String]) -> bool {
    let mut words = call.iter().skip_while(|word| *word != "--config");
    let file = words.nth(1);
    file.is_some_and(|file| !root().join(file).is_file())
}

/// How a call starts a node, with the files of the project that it names.
fn node(call: &[String]) -> Launch {
    let file = |name: &String| {
        let text = fs::read_to_string(root().join(name)).ok()?;
        Some((name.clone(), text))
    };
    Launch {
        arguments: call[1..].to_vec(),
        files: call.iter().filter_map(file).collect(),
        ..Launch::default()
    }
}

/// The blocks of TOML, as configurations of nodes; each with the number of its line.
fn configurations(text: &str) -> Vec<(usize, Launch)> {
    const NAME: &str = "a.toml";
    let launch = |text: String| Launch {
        arguments: ["server", "--config", NAME].map(str::to_owned).to_vec(),
        files: [(NAME.to_owned(), text)].into(),
        ..Launch::default()
    };
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line == "```toml" {
            let block = lines.by_ref().map(|(_, line)| line);
            let block = block.take_while(|line| !line.starts_with("```"));
            let block = block.map(|line| line.to_owned() + "\n").collect();
            found.push((number + 1, launch(block)));
        }
    }
    found
}

#[test]
fn a_node_that_would_not_start_is_found() {
    let text = "```sh\nflo server --listen 10.0.0.1:9000\n```\n```toml\njoin = \"a:1\"\npeers = \"1=a:1\"\n```\n";
    let (_, call) = &calls(text)[0];
    let refused = node(call).config().expect_err("nothing is encrypted");
    assert!(refused.contains("loopback"), "{refused}");
    let found = configurations(text);
    let [(4, launch)] = &found[..] else {
        panic!("one block, on line 4: {found:?}");
    };
    let refused = launch.config().expect_err("it is a first member and joins");
    assert!(refused.contains("both are given"), "{refused}");
}

#[test]
fn every_file_of_deploy_that_a_document_names_is_there() {
    let mut names_count = 0;
    let mut findings = String::new();
    for (document, text) in documents() {
        for name in names(&text) {
            names_count += 1;
            if !root().join(&name).exists() {
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

/// The paths below `deploy` in a document; `kubernetes` is a reader's copy of that folder.
fn names(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    let words = text.split(|c: char| !is_part(c));
    let name = |word: &str| {
        let name = word.trim_end_matches('.');
        let is_copied = name.starts_with("kubernetes/");
        let is_ours = is_copied || name.starts_with("deploy/");
        is_ours.then(|| format!("{}{name}", if is_copied { "deploy/" } else { "" }))
    };
    words.filter_map(name).collect()
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

/// The words of the `flo` calls in a document's shell blocks, each with its line number.
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
        if RUNNERS.iter().any(|program| call.starts_with(program))
            && let Some(inner) = inner(&call)
        {
            call = inner;
        }
        if call.starts_with("flo ") {
            calls.push((number + 1, words(&call)));
        }
    }
    calls
}

/// The call that another program runs. `docker compose run` starts flo with the words after the
/// service name.
fn inner(call: &str) -> Option<String> {
    if let Some(position) = call.find(" flo ") {
        return Some(call[position + 1..].to_owned());
    }
    let (_, rest) = call.split_once(" run ")?.1.split_once(" node")?;
    let (number, arguments) = rest.split_once(' ')?;
    let is_service = number.chars().all(|c| c.is_ascii_digit());
    is_service.then(|| format!("flo {arguments}"))
}

#[test]
fn calls_are_found_and_cut_into_words() {
    let text = "```sh\nflo a 'b c' \\\n    --d # e\nkubectl exec a -- flo g\ndocker compose run --rm node1 h\ndocker compose cp node1:/i i\n```\n```text\nflo no\n```\n```console\n$ flo f | cat\nflo\n```\n";
    let expected = [
        vec!["flo", "a", "b c", "--d"],
        vec!["flo", "g"],
        vec!["flo", "h"],
        vec!["flo", "f"],
    ];
    let found: Vec<Vec<String>> = calls(text).into_iter().map(|(_, call)| call).collect();
    assert_eq!(found, expected);
}

#[test]
fn names_are_cut_out_of_sentences_and_calls() {
    let text =
        "See `deploy/a.toml`. [b](../deploy/b) and -f deploy/c-d/e.yaml, or -k kubernetes/f.";
    let expected = ["deploy/a.toml", "deploy/c-d/e.yaml", "deploy/kubernetes/f"];
    assert_eq!(names(text), expected);
}
