//! The findings of `parse`: one check per code of W6, the limits of W1, the examples.

mod approvals;
mod blocks;
mod bounds;
mod cancellations;
mod compensations;
mod conditions;
mod documents;
mod emit;
mod examples;
mod flow;
mod form;
mod grammar;
mod handlers;
mod hints;
mod inputs;
mod keys;
mod lists;
mod literals;
mod loops;
mod names;
mod outputs;
mod parallel;
mod plans;
mod policies;
mod run_concurrency;
mod run_exclusion;
mod run_retries;
mod sources;
mod state;
mod structure;
mod timeouts;
mod tracking;
mod triggers;
mod waits;

use expect_test::Expect;
use flotilla_dsl::{Parsed, parse, render};
use flotilla_engine::definition::Definition;

/// The keys that every definition has, except `start`.
const HEAD: &str = "kind: Workflow\nname: w\nversion: \"1\"\n";
/// A minimal start step.
const START: &str =
    "start: {run: \"@actions/a\", transitions: {success: flo.Completed, failure: flo.Failed}}\n";

/// Compares all findings of the text.
fn check(text: &str, expected: Expect) {
    let text = dedent(text);
    let parsed = parse(&text);
    expected.assert_eq(&render(&parsed.findings, &text, "w.yaml"));
}

/// As `check`, for what follows [`HEAD`].
fn check_body(body: &str, expected: Expect) {
    check(&format!("{HEAD}{}", dedent(body)), expected);
}

/// As `check`, for what is between [`HEAD`] and [`START`].
fn check_block(block: &str, expected: Expect) {
    check(&format!("{HEAD}{}{START}", dedent(block)), expected);
}

/// The definition of a text without errors; warnings are allowed.
fn accept(text: &str) -> Definition {
    let text = dedent(text);
    let Parsed {
        definition,
        findings,
        ..
    } = parse(&text);
    definition.unwrap_or_else(|| panic!("{}", render(&findings, &text, "w.yaml")))
}

/// As `accept`, for what follows [`HEAD`].
fn accept_body(body: &str) -> Definition {
    accept(&format!("{HEAD}{}", dedent(body)))
}

/// As `accept`, for what is between [`HEAD`] and [`START`].
fn accept_block(block: &str) -> Definition {
    accept(&format!("{HEAD}{}{START}", dedent(block)))
}

/// The text without the test's indentation, if it begins on its own line.
fn dedent(text: &str) -> String {
    let Some(text) = text.strip_prefix('\n') else {
        return text.to_owned();
    };
    let indentation = text.len() - text.trim_start().len();
    let lines = text.trim_end().lines();
    lines
        .map(|line| format!("{}\n", line.get(indentation..).unwrap_or_default()))
        .collect()
}
