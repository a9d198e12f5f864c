//! The workflow language: parses text to the engine's intermediate form, with diagnostics.
//!
//! [`parse`] turns the YAML or JSON text of a workflow into the engine's [`Definition`] and reports
//! everything that is wrong with it (rules W0–W6), with line and column. It works in two stages,
//! and neither stops at the first finding:
//!
//! 1. `tree`: text to a tree of nodes with their positions. This stage bounds everything that
//!    untrusted text can do to a reader: size, nesting, anchors, duplicate keys.
//! 2. `read`: the tree to the definition, one module per block of the grammar.
//!
//! Other modules compute what the engine must not compute itself, since a library's version may
//! change the result (design rule 1): [`schema`], [`cron`] and, based on it, [`schedule`].
//! [`expression`] compiles expressions, and [`query`] parses the conditions on runs that callers write, to the engine's form.
//! [`payload`] says which bytes are JSON.

pub mod cron;
pub mod duration;
pub mod expression;
pub mod payload;
pub mod query;
pub mod schedule;
pub mod schema;

mod code;
mod finding;
mod quote;
mod read;
mod reference;
mod render;
mod span;
mod suggest;
mod tree;

pub use code::{Code, Severity};
pub use finding::Finding;
pub use reference::{Reference, ReferenceTarget, unregistered};
pub use render::render;
pub use span::Span;
pub use suggest::nearest;

use flotilla_engine::definition::Definition;

/// The maximum of findings for one text; the rest is omitted, warnings first.
pub const FINDINGS_MAX: usize = 500;

/// The result of parsing a text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The definition; `Some` if and only if no finding is an error.
    pub definition: Option<Definition>,
    /// Errors first, then warnings, each in document order; at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// The actions, child workflows and streams that the text names, in document order, for a
    /// server to look up (E507).
    pub references: Vec<Reference>,
}

impl Parsed {
    /// Whether the definition is rejected.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.definition.is_none()
    }
}

/// Parses and validates a workflow definition: YAML or JSON, one document, at most 1 MiB (W1).
#[must_use]
pub fn parse(text: &str) -> Parsed {
    expression::with_stack(|| parse_here(text))
}

fn parse_here(text: &str) -> Parsed {
    let tree = tree::build(text);
    let mut result = read::ReadResult::default();
    if let Some(root) = &tree.root {
        result = read::document(root);
    }
    let mut findings = tree.findings;
    findings.append(&mut result.findings);
    findings.sort_by_key(|finding| (finding.severity(), finding.span, finding.code));
    findings.truncate(FINDINGS_MAX);

    let is_refused = findings
        .first()
        .is_some_and(|first| first.severity() == Severity::Error);
    let definition = result.definition.filter(|_| !is_refused);
    debug_assert_eq!(
        definition.is_none(),
        is_refused,
        "a definition is rejected only with an error"
    );
    Parsed {
        definition,
        findings,
        references: result.references,
    }
}
