//! The `parallel` block (W56).

use super::{Bounds, Context, Field, Fields, Reported, blocks::Blocks, field::or_default, state};
use crate::{Code, Finding, tree::Kind};
use flotilla_engine::{
    definition::{Branch, Join, Merge, MergeRule, OnFailure, ParallelStep},
    limits::BRANCHES_MAX,
};

/// A `parallel` block whose branches are collected, and whose other fields are still to be read.
pub(super) struct ParallelDraft<'doc> {
    pub(super) branches: Vec<Branch>,
    fields: Fields<'doc>,
}

impl ParallelDraft<'_> {
    /// Whether it has a `join`. It may be `first`, with which the step ends with the outcome of a branch.
    pub(super) fn has_join(&self) -> bool {
        self.fields.has("join")
    }
}

/// The joins that have names.
const JOINS: [(&str, Join); 3] = [
    ("all", Join::All),
    ("any", Join::Any),
    ("first", Join::First),
];

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
        let name = entry.key.into();
        blocks.open(entry, name, context)
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
    let ParallelDraft {
        branches,
        mut fields,
    } = draft;
    let join = fields.take("join", context);
    let join = or_default(join, Join::default(), |field| {
        read_join(&field, branches.len(), context)
    });
    let on_failure = fields.take("onFailure", context);
    if let (Some(field), Ok(Join::Any | Join::First)) = (&on_failure, &join) {
        let hint = "remove it, or use `join: all` or a number";
        field.warn_without_effect("beside this `join`", hint, context);
    }
    let on_failure = read_on_failure(on_failure, context);
    let merge = fields.take("merge", context);
    let merge = or_default(merge, Vec::new(), |field| read_merge(&field, context));
    fields.finish(context)?;
    Ok(ParallelStep {
        branches,
        join: join?,
        on_failure: on_failure?,
        merge: merge?,
        timeout_ms: None,
        compensates: false,
    })
}

/// Reads what a failure does to what runs beside it (W56, W57).
pub(super) fn read_on_failure<'doc>(
    field: Option<Field<'doc>>,
    context: &mut Context<'doc>,
) -> Result<OnFailure, Reported> {
    let words = [("settle", OnFailure::Settle), ("cancel", OnFailure::Cancel)];
    or_default(field, OnFailure::default(), |field| {
        field.word(&words, context)
    })
}

/// Reads what becomes of keys of the state (W58).
pub(super) fn read_merge<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<MergeRule>, Reported> {
    let entries = state::entries(field, context)?;
    let words = Merge::ALL.map(|merge| (merge.word(), merge));
    let rule = |entry: &Field<'doc>| {
        let key = state::key(entry, context);
        let merge = entry.word(&words, context);
        Ok(MergeRule {
            key: key?,
            merge: merge?,
        })
    };
    let rules: Vec<Result<MergeRule, Reported>> = entries.iter().map(rule).collect();
    rules.into_iter().collect()
}

/// A word, or how many branches must succeed (E516).
fn read_join<'doc>(
    field: &Field<'doc>,
    branches_count: usize,
    context: &mut Context<'doc>,
) -> Result<Join, Reported> {
    match &field.node.kind {
        Kind::String(text) if text.parse::<u16>().is_ok() => {
            let finding = field.mismatch_finding(Code::E100, "a number, or a word such as `any`");
            Err(context.error(finding.hint(format!("write the number without quotes: {text}"))))
        }
        Kind::String(_) => field.word(&JOINS, context),
        _ => {
            let count_max = i64::try_from(branches_count).expect("branches are bounded");
            let bounds = Bounds::new(1, count_max, Code::E516);
            field.whole(bounds, context).map(Join::Count)
        }
    }
}
