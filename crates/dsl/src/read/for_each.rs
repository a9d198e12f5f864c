//! The key `forEach` (W57).

use super::{
    Bounds, Context, Field, Fields, Reported, blocks::Blocks, field::or_default, parallel, template,
};
use crate::{Code, Finding, quote::quote, tree::Kind};
use flotilla_engine::{
    definition::{Branch, ForEachStep, MergeRule, StepIndex, Template, Tolerance},
    ids::StateKey,
    limits::{CONCURRENT_ITERATIONS_MAX, ITEMS_MAX, NAME_BYTES_MAX},
};

/// A `forEach` whose body is collected, and whose items are still to be read.
pub(super) struct ForEachDraft<'doc> {
    pub(super) body: Branch,
    pub(super) concurrency: Result<u16, Reported>,
    fields: Fields<'doc>,
    merge: Result<Vec<MergeRule>, Reported>,
    named: Result<(), Reported>,
}

/// What the steps in the body of a `forEach` need to know about it.
#[derive(Clone, Debug)]
pub(super) struct Loop<'doc> {
    /// The step.
    pub(super) step: StepIndex,
    /// The name of the item, besides `item`.
    pub(super) name: Option<&'doc str>,
    /// Whether its iterations run concurrently.
    pub(super) is_concurrent: bool,
    /// The keys of the state whose values are merged.
    pub(super) merged: Vec<StateKey>,
}

const CONCURRENCY_DEFAULT: u16 = 10;
const CONCURRENCY: Bounds = Bounds::new(1, CONCURRENT_ITERATIONS_MAX as i64, Code::E100);
const TOLERANCE: Bounds = Bounds::new(0, ITEMS_MAX as i64, Code::E100);

/// Names that have another meaning in paths or expressions.
const RESERVED: [&str; 12] = [
    "input", "state", "steps", "flo", "item", "index", "error", "attempt", "result", "output",
    "cancel", "meta",
];
/// The words that CEL reserves.
const CEL_WORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Collects the body of the step that was collected last, and notes what its steps may name.
pub(super) fn collect<'doc>(
    field: &Field<'doc>,
    step: StepIndex,
    blocks: &mut Blocks<'doc>,
    context: &mut Context<'doc>,
) -> Result<ForEachDraft<'doc>, Reported> {
    let mut fields = field.fields(context)?;
    let item = item_name(fields.take("as", context), field, step, context);
    let concurrency = fields.take_any(&["concurrency", "maxConcurrency"], context);
    let concurrency = or_default(concurrency, CONCURRENCY_DEFAULT, |field| {
        field.whole(CONCURRENCY, context)
    });
    let merge = fields.take("merge", context);
    let merge = or_default(merge, Vec::new(), |field| {
        parallel::read_merge(&field, context)
    });
    let rules = merge.as_deref().unwrap_or_default().iter();
    let iteration = Loop {
        step,
        name: item.unwrap_or_default(),
        is_concurrent: concurrency.is_ok_and(|concurrency| concurrency > 1),
        merged: rules.map(|rule| rule.key.clone()).collect(),
    };
    context.names.add_loop(iteration);
    let name = format!("{}-item", blocks.steps[step.position()].label);
    let body = fields.require(&["do"], context);
    let body = body.and_then(|body| blocks.open(body, name.into(), context));
    Ok(ForEachDraft {
        body: body?,
        concurrency,
        fields,
        merge,
        named: item.map(|_| ()),
    })
}

/// The name that `as` gives an item. Inside another `forEach` there must be one.
fn item_name<'doc>(
    field: Option<Field<'doc>>,
    for_each: &Field<'doc>,
    step: StepIndex,
    context: &mut Context<'doc>,
) -> Result<Option<&'doc str>, Reported> {
    let around = context.names.loops_around(context.names.block(step));
    let Some(field) = field else {
        if around.is_empty() {
            return Ok(None);
        }
        let message = format!(
            "expected {} to have `as`, since it is inside another `forEach`",
            for_each.place
        );
        let hint = "the name distinguishes its items from those of the outer one";
        let finding = Finding::new(Code::E100, for_each.key_span, message);
        return Err(context.error(finding.hint(hint)));
    };
    let taken: Vec<&'doc str> = around.iter().filter_map(|around| around.name).collect();
    let name = field.string(context)?;
    match why_refused(name, &taken) {
        None => Ok(Some(name)),
        Some(why) => {
            let message = format!(
                "expected {} to be {why}, but it is {}",
                field.place,
                quote(name)
            );
            Err(context.malformed(field.span(), message))
        }
    }
}

/// What `as` must be, if `name` is not that; `taken` has the names of the enclosing `forEach`.
fn why_refused(name: &str, taken: &[&str]) -> Option<&'static str> {
    let is_first = |first: char| first.is_ascii_alphabetic() || first == '_';
    let is_word = name.starts_with(is_first)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= NAME_BYTES_MAX;
    if !is_word {
        return Some("an identifier of letters, digits and `_` that does not begin with a digit");
    }
    if RESERVED.contains(&name) || CEL_WORDS.contains(&name) {
        return Some("a name that is not reserved in paths or expressions");
    }
    let clashes = taken.iter().any(|taken| clash(taken, name));
    clashes.then_some("a name that differs from the items and indexes of the enclosing `forEach`")
}

/// Whether two values of `as` give an item or an index the same name.
fn clash(one: &str, other: &str) -> bool {
    let is_index_of = |index: &str, item: &str| index.strip_suffix("_index") == Some(item);
    one == other || is_index_of(one, other) || is_index_of(other, one)
}

/// Reads the rest of the `forEach`.
pub(super) fn read<'doc>(
    draft: ForEachDraft<'doc>,
    context: &mut Context<'doc>,
) -> Result<ForEachStep, Reported> {
    let ForEachDraft {
        body,
        concurrency,
        mut fields,
        merge,
        named,
    } = draft;
    let items = fields.require(&["items"], context);
    let items: Result<Template, Reported> =
        items.and_then(|items| template::value_of_run(&items, context));
    let on_failure = fields.take("onFailure", context);
    let on_failure = parallel::read_on_failure(on_failure, context);
    let tolerate = fields.take("tolerate", context);
    let tolerate = or_default(tolerate, Tolerance::default(), |field| {
        tolerance(&field, context)
    });
    let collect = fields.take("collect", context);
    let collects_outputs = or_default(collect, true, |field| {
        field.word(&[("outputs", true), ("none", false)], context)
    });
    fields.finish(context)?;
    named?;
    Ok(ForEachStep {
        items: items?,
        body,
        concurrency: concurrency?,
        on_failure: on_failure?,
        tolerate: tolerate?,
        collects_outputs: collects_outputs?,
        merge: merge?,
        timeout_ms: None,
        compensates: false,
    })
}

/// A number of items, or a percentage such as `"10%"`.
fn tolerance<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Tolerance, Reported> {
    let Kind::String(text) = &field.node.kind else {
        return field.whole(TOLERANCE, context).map(Tolerance::Count);
    };
    let percent = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok());
    match percent {
        Some(percent @ 0..=100) => Ok(Tolerance::Percent(percent)),
        _ => Err(field.mismatch(
            Code::E100,
            "a number of items, or a percentage such as \"10%\"",
            context,
        )),
    }
}
