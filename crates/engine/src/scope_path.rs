//! The published path of a scope (W53), such as `fan/stock`, or `fan#2/stock` below the second visit to `fan`,
//! `prepare` below a block step, or `each[3]` for the item with index 3.

use crate::definition::{BlockIndex, Definition, StepIndex, StepKind};
use crate::limits::ITEMS_MAX;
use crate::tables::{ScopePath, ScopeStep};
use std::fmt::Write;

/// The text of a path; empty for the run itself.
pub(crate) fn to_text(definition: &Definition, path: &ScopePath) -> String {
    let segments: Vec<String> = path
        .0
        .iter()
        .map(|down| segment(definition, down))
        .collect();
    segments.join("/")
}

/// The text of one step down in a path.
pub(crate) fn segment(definition: &Definition, down: &ScopeStep) -> String {
    let opener = definition.step(down.step);
    let mut text = opener.name.to_string();
    if down.visit > 1 {
        write!(text, "#{}", down.visit).expect("a string takes any text");
    }
    match &opener.kind {
        StepKind::Parallel(parallel) => {
            text.push('/');
            text.push_str(parallel.branches[down.position as usize].name.as_str());
        }
        StepKind::ForEach(_) => {
            write!(text, "[{}]", down.position).expect("a string takes any text");
        }
        // It opens only one scope.
        StepKind::Block(_) => {}
        StepKind::Run(_)
        | StepKind::Wait(_)
        | StepKind::Switch(_)
        | StepKind::Set
        | StepKind::Emit(_)
        | StepKind::Timer(_)
        | StepKind::Approval(_) => {
            panic!("only steps with branches open scopes")
        }
    }
    text
}

/// The path that a text names; `None` if a run of the definition has no such scope below it. In a run that was resumed, each
/// step can have been visited several times (W89).
pub(crate) fn parse(
    definition: &Definition,
    text: &str,
    may_repeat_any: bool,
) -> Option<ScopePath> {
    let mut parts = text.split('/');
    let mut block = BlockIndex::ROOT;
    let mut path = Vec::new();
    while let Some(part) = parts.next() {
        let (opener, index) = match part.split_once('[') {
            Some((opener, index)) => (opener, Some(index.strip_suffix(']')?)),
            None => (part, None),
        };
        let (name, visit) = match opener.split_once('#') {
            Some((name, visit)) => (name, number(visit)?),
            None => (opener, 1),
        };
        let step = step_in(definition, block, name)?;
        let may_repeat = may_repeat_any || definition.step(step).may_repeat;
        if visit == 0 || (visit > 1 && !may_repeat) {
            return None;
        }
        let branches = definition.branches(step);
        let (position, branch) = match (&definition.step(step).kind, index) {
            (StepKind::ForEach(_), Some(index)) => {
                let index = number(index).filter(|index| (*index as usize) < ITEMS_MAX);
                (index?, branches.first()?)
            }
            (StepKind::Block(_), None) => (0, branches.first()?),
            (StepKind::Parallel(_), None) => {
                let name = parts.next()?;
                let mut named = (0..).zip(branches);
                named.find(|(_, branch)| branch.name.as_str() == name)?
            }
            _ => return None,
        };
        path.push(ScopeStep {
            step,
            visit,
            position,
        });
        block = branch.block;
    }
    Some(ScopePath(path.into()))
}

/// A number as the path has it: without a sign and leading zeros.
fn number(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

pub(crate) fn step_in(definition: &Definition, block: BlockIndex, name: &str) -> Option<StepIndex> {
    let mut steps = (0..).zip(&definition.steps);
    let found = steps.find(|(_, step)| step.block == block && step.name.as_str() == name);
    found.map(|(index, _)| StepIndex(index))
}
