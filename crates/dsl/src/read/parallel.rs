//! The `parallel` block (W56).

use super::{Context, Field, Fields, Reported, blocks::Blocks, names};
use crate::{Code, Finding};
use flotilla_engine::{
    definition::{Branch, ParallelStep},
    limits::BRANCHES_MAX,
};

/// A `parallel` block whose branches are collected, and whose other fields are still to be read.
pub(super) struct ParallelDraft<'doc> {
    pub(super) branches: Vec<Branch>,
    fields: Fields<'doc>,
}

/// Collects the branches of the step that was collected last.
pub(super) fn collect<'doc>(
    field: &Field<'doc>,
    blocks: &mut Blocks<'doc>,
    context: &mut Context<'doc>,
) -> Result<ParallelDraft<'doc>, Reported> {
    let mut fields = field.fields(context)?;
    let branches = fields.require(&["branches"], context)?;
    let entries = branches.entries(context)?;
    if entries.is_empty() {
        let message = format!(
            "expected {} to have a branch, but it is empty",
            branches.place
        );
        return Err(context.malformed(branches.span(), message));
    }
    if let Some(first) = entries.get(BRANCHES_MAX) {
        let message = format!("expected at most {BRANCHES_MAX} branches, but this is one more");
        return Err(context.error(Finding::new(Code::E520, first.key_span, message)));
    }
    let collect = |entry: Field<'doc>| {
        let name = names::add_branch(entry.key, entry.key_span, context);
        let named = name.as_ref().map(|_| ()).map_err(|reported| *reported);
        let block = blocks.open(entry, named, context);
        Ok(Branch {
            name: name?,
            block: block?,
        })
    };
    let branches: Vec<Result<Branch, Reported>> = entries.into_iter().map(collect).collect();
    Ok(ParallelDraft {
        branches: branches.into_iter().collect::<Result<_, _>>()?,
        fields,
    })
}

/// Reads the rest of the block.
pub(super) fn read<'doc>(
    draft: ParallelDraft<'doc>,
    context: &mut Context<'doc>,
) -> Result<ParallelStep, Reported> {
    draft.fields.finish(context)?;
    Ok(ParallelStep {
        branches: draft.branches,
    })
}
