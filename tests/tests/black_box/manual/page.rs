//! Parses a page of the manual into its examples.

use std::fs;
use std::path::{Path, PathBuf};

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: PathBuf,
    pub(super) examples: Vec<Example>,
}

/// The kind of a fenced block.
#[derive(Debug)]
pub(super) enum Example {
    /// A definition. Its name is in the first line, `# NAME.yaml`, if commands use it.
    Definition { file: Option<String>, text: String },
    /// A command that runs in the background: a worker.
    Background(String),
    /// A command with its output.
    Command(Call),
}

/// A command line and its output.
#[derive(Debug)]
pub(super) struct Call {
    /// Its line, from 1.
    pub(super) line: usize,
    pub(super) script: String,
    /// The output below it on the page; `None` if the page shows no output.
    pub(super) shown: Option<Shown>,
}

/// Lines of a page.
#[derive(Debug)]
pub(super) struct Shown {
    /// The number of the first one, from 1.
    pub(super) line: usize,
    pub(super) lines: Vec<String>,
}

/// Every page, in order of path.
pub(super) fn pages(folder: &Path) -> Vec<Page> {
    let mut files = Vec::new();
    push_files(folder, &mut files);
    files.sort();
    files.into_iter().map(page).collect()
}

fn push_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the manual can be read") {
        let path = entry.expect("the manual can be read").path();
        if path.is_dir() {
            push_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

/// The page in one file.
fn page(path: PathBuf) -> Page {
    let text = fs::read_to_string(&path).expect("a page can be read");
    Page {
        path,
        examples: examples(&text),
    }
}

fn examples(text: &str) -> Vec<Example> {
    let lines: Vec<&str> = text.lines().collect();
    let mut examples = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(kind) = lines[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let first = at + 1;
        let length = lines[first..]
            .iter()
            .position(|line| line.starts_with("```"));
        let end = first + length.expect("a fence is closed");
        let block = &lines[first..end];
        match kind {
            "yaml" => examples.push(definition(block)),
            "console,background" => examples.push(Example::Background(background(block))),
            "console" => examples.extend(calls(block, first + 1)),
            _ => {}
        }
        at = end + 1;
    }
    examples
}

fn definition(block: &[&str]) -> Example {
    let name = block.first().and_then(|line| line.strip_prefix("# "));
    Example::Definition {
        file: name
            .filter(|name| name.ends_with(".yaml"))
            .map(str::to_owned),
        text: block.join("\n") + "\n",
    }
}

fn background(block: &[&str]) -> String {
    let calls = calls(block, 1);
    match calls.as_slice() {
        [Example::Command(call)] => call.script.clone(),
        _ => panic!("expected one command in the background, but the block is {block:?}"),
    }
}

/// The commands of a block that begins on line `first`.
fn calls(block: &[&str], first: usize) -> Vec<Example> {
    let mut calls: Vec<Call> = Vec::new();
    let mut is_continued = false;
    for (index, text) in block.iter().enumerate() {
        let line = first + index;
        if let Some(script) = text.strip_prefix("$ ") {
            calls.push(Call {
                line,
                script: script.to_owned(),
                shown: None,
            });
            is_continued = script.ends_with('\\');
            continue;
        }
        let call = calls
            .last_mut()
            .expect("a block of the console begins with `$ `");
        if is_continued {
            call.script.push('\n');
            call.script.push_str(text.trim_start_matches("> "));
            is_continued = text.ends_with('\\');
            continue;
        }
        let shown = Shown {
            line,
            lines: Vec::new(),
        };
        call.shown
            .get_or_insert(shown)
            .lines
            .push((*text).to_owned());
    }
    calls.into_iter().map(Example::Command).collect()
}
