//! `state` and `set` (W63, W66).

use super::{Context, Field, Reported, context::Visible, template};
use crate::{Code, Finding, Span, quote::quote, tree::Kind};
use flotilla_engine::definition::{Expression, Path, Root, Segment, StateWrites, Template};
use flotilla_engine::ids::StateKey;
use flotilla_engine::limits::STATE_WRITES_MAX;

/// Reads the state that a run begins with.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Template, Reported> {
    if !matches!(field.node.kind, Kind::Mapping(_)) {
        return Err(field.mismatch(crate::Code::E100, "a mapping", context));
    }
    context.seeing(Visible::Nothing, |context| template::read(field, context))
}

/// Reads the values that a step writes.
pub(super) fn writes<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<StateWrites, Reported> {
    let entries = entries(field, context)?;
    let keys: Vec<Result<StateKey, Reported>> =
        entries.iter().map(|entry| key(entry, context)).collect();
    let object = context.seeing(Visible::Result, |context| {
        template::object(field, &entries, context)
    });
    Ok(StateWrites {
        keys: keys.into_iter().collect::<Result<_, _>>()?,
        object: object?,
    })
}

/// The entries of a mapping from keys of the state.
pub(super) fn entries<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<Field<'doc>>, Reported> {
    let entries = field.entries(context)?;
    if entries.is_empty() || entries.len() > STATE_WRITES_MAX {
        let message = format!(
            "expected {} to have 1 to {STATE_WRITES_MAX} values, but it has {}",
            field.place,
            entries.len()
        );
        return Err(context.malformed(field.span(), message));
    }
    Ok(entries)
}

/// The key of the state that an entry names.
pub(super) fn key<'doc>(
    entry: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<StateKey, Reported> {
    let key = StateKey::new(entry.key);
    key.map_err(|error| context.malformed(entry.key_span, error.to_string()))
}

/// Warns about a key that concurrent iterations both read and write, so that updates of other iterations are lost (E522).
pub(super) fn warn_lost_updates(span: Span, writes: &StateWrites, context: &mut Context<'_>) {
    let around = context.names.loops_around(context.block());
    let mut lost = Vec::new();
    for iteration in around {
        let is_merged = |key: &StateKey| iteration.merged.contains(key);
        let mut unmerged = writes.keys.iter().filter(|key| !is_merged(key));
        let own = unmerged.find(|key| reads(&writes.object, key.as_str()));
        if let Some(key) = own.filter(|_| iteration.is_concurrent) {
            lost.push((key.clone(), context.names.name(iteration.step).to_owned()));
        }
    }
    for (key, step) in lost {
        let message = format!(
            "concurrent iterations of {} overwrite each other's updates of {}",
            quote(&step),
            quote(key.as_str())
        );
        let hint = "add `merge` for the key, or use `concurrency: 1`";
        context.warn(Finding::new(Code::E522, span, message).hint(hint));
    }
}

/// Whether a mapping reads a key of the state.
fn reads(object: &Template, key: &str) -> bool {
    let of_path = |path: &Path| {
        let is_state = path.root == Root::State;
        is_state && matches!(path.segments.first(), Some(Segment::Field(field)) if field == key)
    };
    let of_expression = |expression: &Expression| {
        let mut rest = expression.text.as_str();
        while let Some((_, after)) = rest.split_once("state") {
            rest = after;
            let field = after
                .strip_prefix('.')
                .and_then(|field| field.strip_prefix(key));
            let is_whole =
                |after: &str| !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let indexed = ["[\"", "['"]
                .iter()
                .find_map(|open| after.strip_prefix(open));
            let indexed = indexed.and_then(|name| name.strip_prefix(key));
            if field.is_some_and(is_whole)
                || indexed.is_some_and(|after| after.starts_with(['"', '\'']))
            {
                return true;
            }
        }
        false
    };
    object.paths().any(of_path) || object.expressions().any(of_expression)
}
