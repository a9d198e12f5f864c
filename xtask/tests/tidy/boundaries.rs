//! Keeps production code outside the engine away from the engine's rows (ARCHITECTURE.md, "crates/engine").

use crate::rust_code::inline_tests_start;
use crate::rust_text::lines;
use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

/// The module that shows the rows, as other crates name it.
const ROWS: &str = concat!("flotilla_engine::", "rows");

#[test]
fn only_the_engine_names_its_rows() {
    expect_none(&sources(&[".rs"]), rows_named);
}

fn rows_named(source: &Source) -> Vec<Finding> {
    if !is_production(&source.path) {
        return Vec::new();
    }
    let tests_start = inline_tests_start(source).unwrap_or(usize::MAX);
    let production = lines(source)
        .into_iter()
        .take_while(|line| line.number < tests_start);
    let naming = production.filter(|line| line.code.contains(ROWS));
    let message =
        "expected production code to read the state through `flotilla_engine::view`, not its rows";
    naming
        .map(|line| source.finding(line.number, message))
        .collect()
}

/// Whether the file is a source of a crate that is built into `flo`, other than the engine.
fn is_production(path: &str) -> bool {
    let mut parts = path.split('/');
    let (folder, name, kind) = (parts.next(), parts.next(), parts.next());
    folder == Some("crates") && name != Some("engine") && kind == Some("src")
}

#[test]
fn a_row_in_production_code_is_found() {
    let text =
        format!("use {ROWS}::Runs;\n#[cfg(test)]\nmod tests {{\n    use {ROWS}::Runs;\n}}\n");
    let rule = rows_named;
    expect_lines(
        rule,
        &Source::planted("crates/server/src/a.rs", &text),
        &[1],
    );
    expect_lines(
        rule,
        &Source::planted("crates/server/tests/a.rs", &text),
        &[],
    );
    expect_lines(rule, &Source::planted("crates/engine/src/a.rs", &text), &[]);
    expect_lines(rule, &Source::planted("sim/src/a.rs", &text), &[]);
}
