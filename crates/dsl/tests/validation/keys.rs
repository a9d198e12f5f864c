//! The manual's page of keys lists exactly the keys that the decoder knows.

use crate::HEAD;
use flotilla_dsl::parse;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/manual/reference/keys.md");

/// A key that no block has, and that resembles none.
const STRANGER: &str = "qqqqqqqq";

/// A block of the grammar: its heading on the page, the block inside it whose keys are written with
/// a dot, and a definition with an unknown key in that block.
struct Block {
    heading: &'static str,
    inner: &'static str,
    definition: &'static str,
}

const fn block(heading: &'static str, inner: &'static str, definition: &'static str) -> Block {
    Block {
        heading,
        inner,
        definition,
    }
}

const BLOCKS: [Block; 30] = [
    block("Top level", "", "qqqqqqqq: 1\n"),
    block("Defaults", "", "defaults: {qqqqqqqq: 1}\n"),
    block("An input", "", "inputs: {n: {qqqqqqqq: 1}}\n"),
    block("A step", "", "start: {qqqqqqqq: 1}\n"),
    block("A wait", "", "start: {waitForSignal: {qqqqqqqq: 1}}\n"),
    block("An approval", "", "start: {approval: {qqqqqqqq: 1}}\n"),
    block(
        "An arm of a switch",
        "",
        "start: {switch: [{qqqqqqqq: 1}]}\n",
    ),
    block("An output", "", "start: {run: a, output: {qqqqqqqq: 1}}\n"),
    block("A wait for a time", "", "start: {wait: {qqqqqqqq: 1}}\n"),
    block(
        "A loop",
        "",
        "start: {forEach: {do: {run: a}, qqqqqqqq: 1}}\n",
    ),
    block("A record", "", "start: {emit: {qqqqqqqq: 1}}\n"),
    block(
        "A retry policy",
        "",
        "start: {run: a, retry: {qqqqqqqq: 1}}\n",
    ),
    block(
        "A fallback",
        "",
        "start: {run: a, fallback: {qqqqqqqq: 1}}\n",
    ),
    block("Timeouts", "", "start: {run: a, timeouts: {qqqqqqqq: 1}}\n"),
    block(
        "A poll policy",
        "",
        "start: {run: a, poll: {qqqqqqqq: 1}}\n",
    ),
    block("A terminal", "", "terminals: {T: {qqqqqqqq: 1}}\n"),
    block("A plan", "", "plans: {p: {qqqqqqqq: 1}}\n"),
    block("A plan", "health", "plans: {p: {health: {qqqqqqqq: 1}}}\n"),
    block("A plan", "cache", "plans: {p: {cache: {qqqqqqqq: 1}}}\n"),
    block(
        "A plan",
        "fallback",
        "plans: {p: {fallback: {qqqqqqqq: 1}}}\n",
    ),
    block("A plan", "errors", "plans: {p: {errors: {qqqqqqqq: 1}}}\n"),
    block(
        "An executor",
        "",
        "plans: {p: {executors: [{qqqqqqqq: 1}]}}\n",
    ),
    block(
        "An executor",
        "breaker",
        "plans: {p: {executors: [{breaker: {qqqqqqqq: 1}}]}}\n",
    ),
    block(
        "An executor",
        "rate_limit",
        "plans: {p: {executors: [{rate_limit: {qqqqqqqq: 1}}]}}\n",
    ),
    block(
        "An executor",
        "tracking",
        "plans: {p: {executors: [{tracking: {qqqqqqqq: 1}}]}}\n",
    ),
    block("A schedule", "", "schedule: {qqqqqqqq: 1}\n"),
    block("A trigger", "", "trigger: {qqqqqqqq: 1}\n"),
    block("A trigger", "", "triggers: [{qqqqqqqq: 1}]\n"),
    block(
        "A search attribute",
        "",
        "searchAttributes: [{qqqqqqqq: 1}]\n",
    ),
    block(
        "A search attribute",
        "",
        "search_attributes: [{qqqqqqqq: 1}]\n",
    ),
];

/// The keys of the block, from the decoder's hint for an unknown key.
fn known_keys(block: &Block) -> BTreeSet<String> {
    let parsed = parse(&format!("{HEAD}{}", block.definition));
    let mut findings = parsed.findings.into_iter();
    let finding = findings.find(|finding| finding.message.contains(STRANGER));
    let hint = finding.and_then(|finding| finding.hint).unwrap_or_default();
    let keys = hint.strip_prefix("the known keys here are ");
    let keys = keys.unwrap_or_else(|| panic!("{}: {hint:?}", block.definition));
    keys.split(", ").map(str::to_owned).collect()
}

/// The keys that the page lists for the block.
fn listed_keys(block: &Block) -> BTreeSet<String> {
    let (_, section) = PAGE
        .split_once(&format!("\n## {}\n", block.heading))
        .expect("the page has the heading");
    let section = section.split("\n## ").next().expect("a split has a part");
    let first_cells = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let first_cells = first_cells.filter_map(|line| line.split(" |").next());
    let names = first_cells.flat_map(|cell| cell.split('`').step_by(2));
    names.filter_map(|name| within(name, block.inner)).collect()
}

/// The name as it is in the block: `a.b` is `b` in the block `a`, and `a` in the one around it.
fn within(name: &str, inner: &str) -> Option<String> {
    let (outer, rest) = name.split_once('.').unwrap_or((name, ""));
    let found = if inner.is_empty() { outer } else { rest };
    let is_here = inner.is_empty() || outer == inner;
    (is_here && !found.is_empty()).then(|| found.to_owned())
}

#[test]
fn the_page_of_keys_lists_those_that_are_known() {
    for block in &BLOCKS {
        let place = format!("{} {}", block.heading, block.inner);
        assert_eq!(listed_keys(block), known_keys(block), "{place}");
    }
}
