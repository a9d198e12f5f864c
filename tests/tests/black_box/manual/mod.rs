//! The manual is correct: its commands are run and must print what it shows, and its definitions are
//! created and run. `UPDATE=1` rewrites the shown output.

mod page;
mod shape;

use crate::files::folder;
use flotilla_tests::{CommandWorker, DevNode, Flo, Process, Shell, TIMEOUT, wait_until};
use page::{Call, Example, Page, Shown, pages};
use serde_json::Value;
use shape::shape;
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::{env, fs, thread};

#[test]
fn the_commands_of_every_page_print_what_it_shows() {
    let mut played = pages(&folder("docs/manual"));
    played.extend(pages(&folder("docs/operations")));
    played.retain(|page| {
        let mut examples = page.examples.iter();
        examples.any(|example| matches!(example, Example::Command(_)))
    });
    assert!(played.len() >= 10, "pages have commands: {}", played.len());
    thread::scope(|scope| {
        for page in &played {
            scope.spawn(|| play(page));
        }
    });
}

/// Runs a page on a separate node, from its start to its end.
fn play(page: &Page) {
    let node = DevNode::start();
    symlink(folder("examples"), node.scratch().path("examples")).expect("a fresh folder");
    let shell = Shell::new(&node);
    let mut running: Vec<Process> = Vec::new();
    let mut printed = Vec::new();
    for example in &page.examples {
        match example {
            Example::Definition {
                file: Some(name),
                text,
            } => {
                let _ = node.scratch().write(name, text);
            }
            Example::Definition { file: None, .. } => {}
            Example::Background(line) => {
                let name = format!("background-{}", running.len());
                running.push(shell.start(&name, line));
            }
            Example::Command(call) => printed.extend(perform(&shell, page, call)),
        }
    }
    if printed.iter().any(Printed::differs) {
        rewrite(page, &printed);
    }
}

/// The output that the page shows for a command, and the actual output.
struct Printed<'a> {
    shown: &'a Shown,
    found: Vec<String>,
}

impl Printed<'_> {
    fn differs(&self) -> bool {
        shape(&self.shown.lines) != shape(&self.found)
    }
}

/// Runs a command. A command whose shown output is an error must fail, every other must succeed.
fn perform<'a>(shell: &Shell<'_>, page: &Page, call: &'a Call) -> Option<Printed<'a>> {
    let answer = shell.run(&call.script);
    let place = format!("{}:{}", page.path.display(), call.line);
    let is_failing = answer.stdout.lines().any(|line| line.starts_with("error"));
    assert_eq!(answer.code == 0, !is_failing, "{place}: {}", answer.show());
    let shown = call.shown.as_ref()?;
    let lines = answer.stdout.lines();
    let found: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    let printed = Printed { shown, found };
    if printed.differs() {
        let [shown, found] = [&shown.lines, &printed.found].map(|lines| lines.join("\n"));
        eprintln!("{place} shows\n{shown}\nbut it is\n{found}\n");
    }
    Some(printed)
}

/// Rewrites all shown output of the page on request, so that it stays consistent.
///
/// # Panics
/// When that was not requested.
fn rewrite(page: &Page, printed: &[Printed<'_>]) {
    assert!(
        env::var_os("UPDATE").is_some(),
        "{} shows another output; UPDATE=1 rewrites it",
        page.path.display()
    );
    let text = fs::read_to_string(&page.path).expect("a page can be read");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for Printed { shown, found } in printed.iter().rev() {
        let first = shown.line - 1;
        lines.splice(first..first + shown.lines.len(), found.iter().cloned());
    }
    fs::write(&page.path, lines.join("\n") + "\n").expect("a page can be written");
}

/// Has what the definitions require of their input.
const INPUT: &str = r#"{
    "id": 7, "service": "api", "item": "pen", "quantity": 2, "ticket": "help", "url": "https://example.org", "urls": [],
    "workspace": "acme", "machine": "m-1", "data": "/vms/1"
}"#;

#[test]
fn every_definition_of_the_manual_is_created_and_run() {
    let node = DevNode::start();
    let flo = node.flo();
    let examples = pages(&folder("docs/manual"))
        .into_iter()
        .flat_map(|page| page.examples);
    let definitions: Vec<String> = examples
        .filter_map(|example| match example {
            Example::Definition { text, .. } => Some(text),
            Example::Background(_) | Example::Command(_) => None,
        })
        .collect();
    assert!(
        definitions.len() > 20,
        "the manual has definitions: {}",
        definitions.len()
    );
    let actions: BTreeSet<String> = definitions.iter().flat_map(|text| actions(text)).collect();
    let actions: Vec<(&str, &str)> = actions
        .iter()
        .map(|action| (action.as_str(), "cat"))
        .collect();
    let _worker = CommandWorker::start(&flo, node.scratch(), "manual", &actions);
    for (index, definition) in definitions.iter().enumerate() {
        let file = node.scratch().write(&format!("{index}.yaml"), definition);
        let created = flo.json(&["workflow", "create", "-f", &file]);
        let name = created["name"].as_str().expect("a name").to_owned();
        let key = format!("run-{index}");
        let run_id = flo.text(&["workflow", "start", &name, INPUT, "--idempotency-key", &key]);
        let what = format!("{name} to end, or to wait for somebody outside");
        wait_until(&what, TIMEOUT, || settled(&flo, &run_id));
    }
}

/// The actions that a definition names.
fn actions(definition: &str) -> Vec<String> {
    let mut actions = Vec::new();
    for part in definition.split("@actions/").skip(1) {
        let is_name = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        actions.push(part.chars().take_while(is_name).collect());
    }
    actions
}

/// Whether a run has ended, or waits for something from outside; otherwise its state.
fn settled(flo: &Flo, run_id: &str) -> Result<(), String> {
    let run = flo.json(&["workflow", "status", run_id]);
    let is_asking = |step: &Value| {
        ["signal", "approval"].contains(&step["waiting_for"].as_str().unwrap_or_default())
    };
    let mut steps = run["current_steps"].as_array().into_iter().flatten();
    let is_settled = match run["status"].as_str() {
        Some("waiting") => steps.any(is_asking),
        Some("completed" | "failed") => true,
        _ => false,
    };
    is_settled.then_some(()).ok_or_else(|| run.to_string())
}
