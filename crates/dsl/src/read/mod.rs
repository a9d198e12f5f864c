//! Reads the tree to a definition: one module per block of the grammar (W0, W2–W6).
//!
//! Every reader returns `Result<_, Reported>`. Only [`Context::error`] makes a [`Reported`], so a
//! part of the definition that could not be read always has a finding. Readers evaluate all their
//! fields before they look at the first result: nothing stops early.

mod approval;
mod attributes;
mod backoff;
mod blocks;
mod cache;
mod call;
mod concurrency;
mod context;
mod defaults;
mod document;
mod duration;
mod emit;
mod exclusion;
mod executor;
mod expression;
mod field;
mod fields;
mod for_each;
mod graph;
mod inputs;
mod metadata;
mod names;
mod output;
mod parallel;
mod path;
mod plan;
mod poll;
mod retry;
mod retry_run;
mod schedule;
mod state;
mod step;
mod switch;
mod target;
mod template;
mod terminals;
mod timeouts;
mod timer;
mod tracking;
mod transitions;
mod trigger;
mod wait;

use crate::{Finding, Reference, tree::Node};
use context::{Context, Reported};
use field::{Bounds, Field};
use fields::Fields;
use flotilla_engine::definition::Definition;

/// The result of reading a document.
#[derive(Debug, Default)]
pub(crate) struct ReadResult {
    /// The definition; `None` only if there is an error.
    pub(crate) definition: Option<Definition>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) references: Vec<Reference>,
}

/// Reads the document.
pub(crate) fn document(root: &Node) -> ReadResult {
    let mut context = Context::default();
    let definition = document::read(root, &mut context).ok();
    ReadResult {
        definition,
        findings: context.findings,
        references: context.references,
    }
}
