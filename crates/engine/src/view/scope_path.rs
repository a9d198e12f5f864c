//! The published path of a scope (W53).

use crate::definition::{Definition, StepKind};
use crate::tables::{ScopeId, ScopeStep};
use std::fmt::Write;

/// The path of a scope, such as `fan/stock`, or `fan#2/stock` below the second visit to `fan`, `prepare` below a block step, or
/// `each[3]` for the item with index 3; empty for the run itself.
pub(super) fn scope_path(definition: &Definition, scope: &ScopeId) -> String {
    let mut path = String::new();
    for ScopeStep {
        step,
        visit,
        position,
    } in &scope.path
    {
        if !path.is_empty() {
            path.push('/');
        }
        let opener = definition.step(*step);
        path.push_str(opener.name.as_str());
        if *visit > 1 {
            write!(path, "#{visit}").expect("a string takes any text");
        }
        match &opener.kind {
            StepKind::Parallel(parallel) => {
                path.push('/');
                path.push_str(parallel.branches[*position as usize].name.as_str());
            }
            StepKind::ForEach(_) => {
                write!(path, "[{position}]").expect("a string takes any text");
            }
            // It opens only one scope.
            StepKind::Block(_) => {}
            StepKind::Run(_)
            | StepKind::Wait(_)
            | StepKind::Switch(_)
            | StepKind::Set
            | StepKind::Emit(_)
            | StepKind::Timer(_) => {
                panic!("only steps with branches open scopes")
            }
        }
    }
    path
}
