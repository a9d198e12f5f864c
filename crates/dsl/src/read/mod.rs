//! The tree to the definition: one module per block of the grammar (W0, W2–W6).
//!
//! Every reader returns `Result<_, Reported>`. [`Reported`] can only be had from
//! [`Context::error`], so a part of the definition that could not be read is always explained.
//! Readers evaluate all their fields before they look at the first result: nothing stops early.

mod attributes;
mod backoff;
mod cache;
mod context;
mod document;
mod executor;
mod field;
mod fields;
mod graph;
mod metadata;
mod names;
mod path;
mod plan;
mod policy;
mod schedule;
mod step;
mod target;
mod template;
mod terminals;
mod transitions;
mod trigger;
mod wait;

use crate::{Finding, Reference, tree::Node};
use context::{Context, Reported};
use field::{Bounds, Field};
use fields::Fields;
use flotilla_engine::definition::Definition;

/// What reading a document came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The definition; `None` only beside an error.
    pub(crate) definition: Option<Definition>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) references: Vec<Reference>,
}

/// Reads the document.
pub(crate) fn document(root: &Node) -> Outcome {
    let mut context = Context::default();
    let definition = document::read(root, &mut context).ok();
    Outcome {
        definition,
        findings: context.findings,
        references: context.references,
    }
}
