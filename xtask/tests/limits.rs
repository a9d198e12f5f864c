//! The manual's page of limits is generated from the files of the limits; `UPDATE=1` rewrites it.

#[path = "limits/expression.rs"]
mod expression;
#[path = "../src/project/root.rs"]
mod project;
#[path = "limits/source.rs"]
mod source;

use project::root;
use source::Limit;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const PAGE: &str = "docs/manual/reference/limits.md";

const HEAD: &str = "\
# Limits

A request that exceeds a limit is refused with a clear message, unless the row says otherwise. Many rows only bound the
work or memory of a node; no request can exceed those. A limit whose name ends in `DEFAULT` applies unless another value
is given. This page is generated from the source files of the limits.
";

/// The files, in an order in which each constant comes before its users.
const FILES: [(&str, &str); 4] = [
    ("What is stored and run", "crates/engine/src/limits.rs"),
    ("Requests to a node", "crates/server/src/limits.rs"),
    ("The leader", "crates/leader/src/limits.rs"),
    ("WebAssembly", "crates/wasm/src/limits.rs"),
];

#[test]
fn the_page_of_limits_lists_the_limits() {
    let mut page = HEAD.to_owned();
    for (title, file) in FILES {
        let text = fs::read_to_string(root().join(file)).expect("a file of limits");
        let known = known_before(file);
        let limits = source::limits(&text, &known);
        assert!(limits.len() > 10, "{file} holds limits");
        write!(
            page,
            "\n## {title}\n\n| limit | value | what |\n|---|---|---|\n"
        )
        .expect("a string takes any text");
        for limit in limits {
            push_row(&mut page, &limit);
        }
    }
    compare(&root().join(PAGE), &page);
}

/// The values of the earlier files, which a file may import.
fn known_before(file: &str) -> BTreeMap<String, u64> {
    let mut known = BTreeMap::new();
    for (_, earlier) in FILES.iter().take_while(|(_, earlier)| *earlier != file) {
        let text = fs::read_to_string(root().join(earlier)).expect("a file of limits");
        let limits = source::limits(&text, &known);
        known.extend(limits.into_iter().map(|limit| (limit.name, limit.value)));
    }
    known
}

fn push_row(page: &mut String, limit: &Limit) {
    let Limit { name, what, .. } = limit;
    let value = limit.show();
    writeln!(page, "| `{name}` | {value} | {what} |").expect("a string takes any text");
}

fn compare(path: &PathBuf, found: &str) {
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected == found {
        return;
    }
    if env::var_os("UPDATE").is_some() {
        fs::write(path, found).expect("the page is writable");
        return;
    }
    let lines = expected.lines().zip(found.lines());
    let first = lines.take_while(|(left, right)| left == right).count();
    panic!(
        "{PAGE} differs from line {} on; UPDATE=1 rewrites it",
        first + 1
    );
}
