//! The tables of conformance name tests that exist and run.
//!
//! `docs/conformance.md` defines each form of proof, for its own tables and those of the pages in
//! `docs/conformance`. A row without a proof, a test that does not exist or is ignored, and a script that is not run are
//! findings.

use crate::citations::is_rule_number;
use crate::tree::{Finding, Source, expect_lines, expect_no_findings, sources};

const PAGE: &str = "docs/conformance.md";

/// The folder of the further pages.
const PAGES: &str = "docs/conformance/";

/// The folder of scripts, all of which the engine's script test runs.
const SCRIPTS: &str = "crates/engine/testdata/";
const SCRIPT_SEPARATOR: &str = "\n----\n";
const SCRIPT_RUNNER: &str = "crates/engine/tests/engine/script/mod.rs";
const SCRIPT_TEST: &str = "every_script_shows_what_the_engine_does";

/// The separator between two proofs of one row.
const BETWEEN_PROOFS: &str = "<br>";

#[test]
fn every_row_of_a_table_of_conformance_has_a_proof_that_holds() {
    let files = sources(&[".md", ".rs", ".txt"]);
    let pages: Vec<&Source> = files.iter().filter(|file| is_page(&file.path)).collect();
    assert!(pages.len() > 1, "{PAGE} and the pages in {PAGES}");
    for page in &pages {
        assert!(rows(page).count() > 0, "{} has no row", page.path);
    }
    let findings = pages.iter().flat_map(|page| without_proof(page, &files));
    expect_no_findings(findings.collect());
}

fn is_page(path: &str) -> bool {
    path == PAGE || (path.starts_with(PAGES) && path.ends_with(".md"))
}

#[test]
fn the_scripts_that_the_tables_name_are_played() {
    let files = sources(&[".rs"]);
    assert_eq!(live_test(&files, SCRIPT_RUNNER, SCRIPT_TEST), Ok(()));
    let runner = find(&files, SCRIPT_RUNNER).expect("the runner was just found");
    assert!(
        runner.text.contains("testdata::files(\"\")"),
        "the runner takes every file of the folder"
    );
}

fn without_proof(page: &Source, files: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in rows(page) {
        match cells(line).as_slice() {
            [statement, proofs] if !statement.is_empty() => {
                let proofs = proofs.split(BETWEEN_PROOFS).map(str::trim);
                let faults = proofs.filter_map(|proof| check(proof, files).err());
                findings.extend(faults.map(|fault| page.finding(number, fault)));
            }
            _ => findings.push(page.finding(number, "expected `| statement | proof |`")),
        }
    }
    findings
}

/// The rows below the heads of the tables of a page.
fn rows(page: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut is_body = false;
    page.lines().filter(move |(_, line)| {
        let is_row = line.starts_with('|') && is_body;
        is_body = line.starts_with('|') && (is_body || line.starts_with("|---"));
        is_row
    })
}

/// The cells of a row; `\|` is a character of the text.
fn cells(row: &str) -> Vec<String> {
    const BAR: &str = "\u{0}";
    let row = row.replace("\\|", BAR);
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    row.split('|')
        .map(|cell| cell.trim().replace(BAR, "|"))
        .collect()
}

/// Rejects an invalid proof, with the reason.
fn check(proof: &str, files: &[Source]) -> Result<(), String> {
    let quoted = proof
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'));
    match quoted.map(|name| (name, name.split_once("::"))) {
        Some((_, Some((path, test)))) => live_test(files, path, test),
        Some((path, None)) => played_script(files, path),
        None if is_reason(proof) => Ok(()),
        None => Err(format!("expected a proof, but found `{proof}`")),
    }
}

/// Whether the text is `ruling W31: …`, `not yet: …` or `out of scope: …`.
fn is_reason(proof: &str) -> bool {
    let Some((kind, text)) = proof.split_once(": ") else {
        return false;
    };
    let is_kind = match kind.strip_prefix("ruling ") {
        Some(number) => is_rule_number(number),
        None => matches!(kind, "not yet" | "out of scope"),
    };
    is_kind && !text.trim().is_empty()
}

fn live_test(files: &[Source], path: &str, test: &str) -> Result<(), String> {
    let Some(file) = find(files, path) else {
        return Err(format!("there is no file `{path}`"));
    };
    let Some(attributes) = attributes(file, test) else {
        return Err(format!("`{path}` has no function `{test}`"));
    };
    if !attributes.contains("#[test]") && !attributes.contains("#[tokio::test") {
        return Err(format!("`{test}` is not a test"));
    }
    if attributes.contains("ignore") {
        return Err(format!("the test `{test}` is ignored"));
    }
    Ok(())
}

/// The text between the function and the previous item, without comments.
fn attributes(file: &Source, function: &str) -> Option<String> {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let is_function = |line: &&str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        let rest = line
            .strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(function));
        rest.is_some_and(|rest| rest.starts_with('('))
    };
    let place = lines.iter().position(is_function)?;
    let is_attribute = |line: &&&str| !line.is_empty() && !line.ends_with(['{', '}', ';']);
    let above = lines[..place].iter().rev().take_while(is_attribute);
    let code = above.filter(|line| !line.starts_with("//"));
    Some(code.copied().collect::<Vec<&str>>().join("\n"))
}

fn played_script(files: &[Source], path: &str) -> Result<(), String> {
    let name = path.strip_prefix(SCRIPTS);
    if !name.is_some_and(|name| !name.contains('/') && name.ends_with(".txt")) {
        return Err(format!(
            "expected `PATH::test` or a script in `{SCRIPTS}`, but found `{path}`"
        ));
    }
    let Some(script) = find(files, path) else {
        return Err(format!("there is no script `{path}`"));
    };
    if !script.text.contains(SCRIPT_SEPARATOR) {
        return Err(format!("the script `{path}` contains no command"));
    }
    Ok(())
}

fn find<'a>(files: &'a [Source], path: &str) -> Option<&'a Source> {
    files.iter().find(|file| file.path == path)
}

#[test]
fn planted_rows_without_a_proof_are_found() {
    let text = "\
| The manual says | Proof |
|---|---|
| proven | `a.rs::holds` |
| a \\| b | `crates/engine/testdata/a.txt`<br>`a.rs::holds_later` |
| changed | ruling W21a: it says why |
| later | not yet: with the next release |
| elsewhere | out of scope: another manual |
| nothing | |
| | `a.rs::holds` |
| one cell |
| three | `a.rs::holds` | cells |
| gone | `a.rs::gone` |
| no file | `b.rs::holds` |
| no test | `a.rs::helper` |
| ignored | `a.rs::sleeps`<br>`a.rs::sleeps_by_condition` |
| golden bytes | `crates/engine/testdata/golden/a.txt` |
| no script | `crates/engine/testdata/b.txt` |
| empty script | `crates/engine/testdata/empty.txt` |
| no rule | ruling W: why |
| no reason | ruling W1: |
| prose | it is so |

text
";
    let planted = Source::planted(PAGE, text);
    let expected = [8, 9, 10, 11, 12, 13, 14, 15, 15, 16, 17, 18, 19, 20, 21];
    expect_lines(
        |page| without_proof(page, &planted_files()),
        &planted,
        &expected,
    );
}

fn planted_files() -> [Source; 4] {
    // In two parts, since no test of the tree may be ignored.
    let code = "\
mod a;
#[test]
fn holds() {}

/// Mentions ~ only in a comment.
#[tokio::test(
    flavor = \"multi_thread\"
)]
async fn holds_later() {
    helper();
}
fn helper() {}
#[test]
~ = \"slow\"]
fn sleeps() {}

#[test]
#[cfg_attr(unix, ignore)]
fn sleeps_by_condition() {}
"
    .replace('~', concat!("#[ig", "nore"));
    [
        Source::planted("a.rs", &code),
        Source::planted("crates/engine/testdata/a.txt", "define\n----\nok\n"),
        Source::planted("crates/engine/testdata/empty.txt", "only words\n"),
        Source::planted("crates/engine/testdata/golden/a.txt", "define\n----\nok\n"),
    ]
}
